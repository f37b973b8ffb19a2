"""How families of models print thoughts; every module here has its `FORMATS`."""
