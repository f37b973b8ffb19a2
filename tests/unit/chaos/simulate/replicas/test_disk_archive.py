import itertools

from smg_chaos.simulate.base.virtual_clock import SECOND
from smg_chaos.simulate.hosts.disk_archive import BACKUP_APART_US, BACKUPS_MAX, Archive
from smg_chaos.simulate.hosts.state_write import Write

SURE = {("settings", "k"): Write(("settings", "k"), "a", 1, 0, b"v", 0)}


def test_an_empty_file_is_none() -> None:
    archive = Archive()
    archive.write("settings/0", b"x")
    archive.write("settings/0", b"")
    assert archive.files == {}


def test_a_disk_turns_back_to_the_newest_backup_that_is_old_enough() -> None:
    archive = Archive()
    for number in range(3):
        archive.write("settings/0", b"%d" % number)
        archive.wall_ms = number
        archive.complete(SURE, now_us=number * BACKUP_APART_US)
    assert archive.turn_back(2 * BACKUP_APART_US - 1)
    assert (archive.files, archive.wall_ms) == ({"settings/0": b"1"}, 1)
    assert archive.sure == SURE
    assert not archive.turn_back(-1)
    assert archive.files == {"settings/0": b"1"}


def test_backups_are_few_and_apart() -> None:
    archive = Archive()
    for number in range(1_000):
        archive.complete({}, now_us=number * SECOND)
    assert len(archive.backups) == BACKUPS_MAX
    ages = [backup.at_us for backup in archive.backups]
    assert min(later - sooner for sooner, later in itertools.pairwise(ages)) >= (BACKUP_APART_US)
