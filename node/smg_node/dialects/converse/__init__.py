"""Amazon Bedrock: its Converse API as vendors' models speak it, and the frames that its streams come in."""
