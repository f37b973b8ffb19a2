"""Section reader: fields of JSON are read as a file's are, and all that is wrong is named."""

import pytest

from smg_node.config.schema.problems import ConfigurationError
from smg_node.config.sections.discovery import DnsSource, KubernetesSource
from smg_node.config.sources.section_reader import read_section


def test_what_was_given_is_returned_and_nothing_else() -> None:
    assert read_section(KubernetesSource, {"selector": "a=b", "port": 80}) == {
        "selector": "a=b",
        "port": "80",
    }
    assert read_section(DnsSource, {"name": "_x", "servers": ["10.0.0.1:53"]}) == {
        "name": "_x",
        "servers": ["10.0.0.1:53"],
    }


def test_everything_that_is_wrong_is_named_with_its_field() -> None:
    with pytest.raises(ConfigurationError) as caught:
        read_section(KubernetesSource, {"selectr": "a=b", "port": [], "scheme": "grpx"})
    assert [problem.subject for problem in caught.value.problems] == ["selectr", "port", "scheme"]
    with pytest.raises(ConfigurationError) as caught:
        read_section(KubernetesSource, {"selector": "a" * 2000, "namespace": "No"})
    assert [str(problem) for problem in caught.value.problems] == [
        "selector: it has more than 1024 characters",
        "namespace: 'No' is no name of a namespace, and not *",
    ]


def test_what_is_wrong_with_all_of_them_together_has_no_field() -> None:
    with pytest.raises(ConfigurationError) as caught:
        read_section(KubernetesSource, {})
    assert [problem.subject for problem in caught.value.problems] == [""]
