"""Plan builder: loads the tokenizer, reads the script and parses the faults that a plan names."""

from typing import Final

from smg_chaos.engine.plans import Plan, Wanted
from smg_chaos.engine.protocol.faults import parse_fault
from smg_chaos.engine.scripts.bundle import Bundle, folder_bundle, tiny_bundle
from smg_chaos.engine.scripts.scripts import script_of
from smg_chaos.engine.settings import EngineSettings

OPENAI: Final = "openai"


def make_plan(wanted: Wanted) -> Plan:
    """Return the plan; ValueError or BundleError names what is unknown or missing, and the nearest
    known name.
    """
    if wanted.port and wanted.port + wanted.workers - 1 > 65535:
        raise ValueError("there are not that many ports")
    bundle, vocabulary = _bundle(wanted)
    said, server = dict(wanted.settings), wanted.server
    if said.get("contract") == OPENAI:
        if server != "grpc":
            raise ValueError(f"--server {server} does not speak the contract {OPENAI}")
        said["contract"], server = EngineSettings().contract, OPENAI
    settings = EngineSettings(**said, vocabulary=vocabulary)
    return Plan(
        settings=settings,
        bundle=bundle,
        script=script_of(wanted.script, bundle),
        faults=tuple(parse_fault(spec) for spec in wanted.faults),
        server=server,
        host=wanted.host,
        port=wanted.port,
        workers=wanted.workers,
        report=wanted.report,
        until_input_ends=wanted.until_input_ends,
        api_key=wanted.api_key,
        tell_calls=wanted.tell_calls,
        account=wanted.account,
        kv_store=wanted.kv_store,
    )


def _bundle(wanted: Wanted) -> tuple[Bundle, int]:
    defaults = EngineSettings()
    if wanted.tokenizer is None:
        vocabulary = wanted.vocabulary or defaults.vocabulary
        model = str(wanted.settings.get("model", defaults.model))
        context = int(wanted.settings.get("context", defaults.context))
        vision = str(wanted.settings.get("vision", defaults.vision))
        area_max = int(wanted.settings.get("media_area_max", defaults.media_area_max))
        bundle = tiny_bundle(
            model, vocabulary=vocabulary, context=context, vision=vision, area_max=area_max
        )
        return bundle, vocabulary
    bundle = folder_bundle(wanted.tokenizer)
    claimed = bundle.model_config.get("vocab_size")
    vocabulary = wanted.vocabulary or (claimed if isinstance(claimed, int) else bundle.size)
    return bundle, vocabulary
