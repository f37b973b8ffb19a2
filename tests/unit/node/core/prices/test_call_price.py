"""What a run of a tool costs, as operators write it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smg_node.core.prices.call_price import CALL_PRICE_MAX, read_call_price
from smg_node.core.prices.price import PICO


@pytest.mark.parametrize(
    ("text", "pico"),
    [
        ("0", 0),
        ("1", PICO),
        ("0.005", PICO // 200),
        ("2.50", 5 * PICO // 2),
        ("0.000000000001", 1),
        ("1000000", CALL_PRICE_MAX * PICO),
        ("1000000.000000000000", CALL_PRICE_MAX * PICO),
    ],
)
def test_a_decimal_number_is_exact(text: str, pico: int) -> None:
    assert read_call_price(text) == pico


@pytest.mark.parametrize(
    "text",
    [
        *("", " 1", "1\n", "-1", "+1", ".5", "1.", "1e3", "1,5", "0x1", "nan", "inf", "$1", "١"),
        *("0.0000000000001", "1000000.000000000001", "1000001", "9" * 40),
    ],
)
def test_anything_else_is_no_price(text: str) -> None:
    with pytest.raises(ValueError, match="must be a decimal number"):
        read_call_price(text)


@given(st.integers(0, CALL_PRICE_MAX * PICO))
def test_all_that_can_be_written_is_read_back(pico: int) -> None:
    assert read_call_price(f"{pico // PICO}.{pico % PICO:012}") == pico


@given(st.text())
def test_any_text_is_a_price_or_none(text: str) -> None:
    try:
        assert 0 <= read_call_price(text) <= CALL_PRICE_MAX * PICO
    except ValueError:
        return
