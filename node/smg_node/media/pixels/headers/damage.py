"""Damage: what is raised inside the readers of one picture, where the path of its part is not known; pure."""


class DamagedPicture(Exception):  # noqa: N818 - it is a picture that is damaged, not the program
    """An encoded picture that is refused; its message says what was found, without any of its bytes."""
