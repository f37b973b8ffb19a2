"""Render context: the variables of one render, and the meter it runs on."""

from collections.abc import Mapping
from typing import Any

from jinja2 import Environment
from jinja2.nodes import EvalContext
from jinja2.runtime import Context

from smg_node.prompts.jinja.json_cache import JsonTexts
from smg_node.prompts.jinja.render_budget import Meter


class ChatContext(Context):
    """Jinja's context with a meter, made in a quarter of the time.

    Blocks, imports and inheritance do not exist for chat templates, and escaping cannot be switched
    on, so one evaluation context serves every render of an environment.
    """

    def __init__(
        self,
        environment: Environment,
        variables: dict[str, Any],
        eval_context: EvalContext,
        meter: Meter,
        json_texts: JsonTexts,
    ) -> None:
        self.parent = variables
        self.vars = {}
        self.environment = environment
        self.eval_ctx = eval_context
        self.exported_vars = set()
        self.name = None
        self.globals_keys = set()
        self.blocks = {}
        self.meter = meter
        self.json_texts = json_texts

    # Jinja names the parameter after a builtin.
    def derived(self, locals: Mapping[str, Any] | None = None) -> "ChatContext":  # noqa: A002
        """Return a context that also knows `locals`; on the same meter."""
        variables = dict(self.get_all(), **(locals or {}))
        assert isinstance(self.environment, Environment)
        return ChatContext(self.environment, variables, self.eval_ctx, self.meter, self.json_texts)
