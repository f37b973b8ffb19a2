"""A history of three revisions: ours, and two as they may follow one day."""

import shutil
from pathlib import Path
from typing import Final

from smg_migrations import running
from smg_migrations.running import History

_SECOND: Final = '''"""A column more, and an index that is made beside running work."""

import sqlalchemy as sa

revision = "0002"
down_revision = "0001"


def upgrade(*, op, names):
    table = names.table("responses")
    with op.batch_alter_table(table) as batch:
        batch.add_column(sa.Column("more", sa.String(8), nullable=False, server_default="x"))
        batch.alter_column(names.column("responses", "model"), type_=sa.String(512))
    if op.get_context().dialect.name == "postgresql":
        with op.get_context().autocommit_block():
            op.create_index("ix_more", table, ["more"], postgresql_concurrently=True)
    else:
        op.create_index("ix_more", table, ["more"])


def downgrade(*, op, names):
    table = names.table("responses")
    op.drop_index("ix_more", table)
    with op.batch_alter_table(table) as batch:
        batch.drop_column("more")
        batch.alter_column(names.column("responses", "model"), type_=sa.String(256))
'''
_THIRD: Final = '''"""What fails half way if there is an item called `bad`."""

import sqlalchemy as sa

revision = "0003"
down_revision = "0002"


def upgrade(*, op, names):
    op.add_column("idempotency_keys", sa.Column("more", sa.String(8)))
    bind = op.get_bind()
    if bind.scalar(sa.text("SELECT count(*) FROM conversation_items WHERE id = 'bad'")):
        op.execute("SELECT nothing FROM nowhere")


def downgrade(*, op, names):
    op.drop_column("idempotency_keys", "more")
'''


def three_revisions(folder: Path) -> History:
    """Return a history of ours and two more, written into a folder."""
    versions = folder / "versions"
    shutil.copytree(Path(running.__file__).parent / "versions", versions)
    (versions / "0002_more.py").write_text(_SECOND, encoding="utf-8")
    (versions / "0003_most.py").write_text(_THIRD, encoding="utf-8")
    return History(folder)
