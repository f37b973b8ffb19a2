"""Tool loop: a generation whose model may call tools of this side, as several passes told as one stream."""
