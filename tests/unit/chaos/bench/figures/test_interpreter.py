"""How quick an interpreter is: the least of its tries, and said in words beside its version."""

from smg_chaos.bench.figures.interpreter import step_ns, told


def test_the_least_of_all_tries_counts() -> None:
    took_s = (0.004, 0.009, 0.002, 0.003, 0.005, 0.006, 0.007)
    looks = [0.0]
    for one in took_s:
        looks += [looks[-1], looks[-1] + one]
    clock = iter(looks[1:])
    assert round(step_ns(lambda: next(clock)), 6) == 100.0


def test_a_real_step_takes_time() -> None:
    assert step_ns() > 1


def test_it_is_told_beside_the_version() -> None:
    assert told({"python": "3.13.1", "python_step_ns": 140}) == "3.13.1 (140 ns a plain step)"


def test_figures_of_before_tell_the_version_alone() -> None:
    assert told({"python": "3.11.7"}) == "3.11.7"
