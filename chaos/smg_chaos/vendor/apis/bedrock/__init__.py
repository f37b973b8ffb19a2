"""The Converse API of Bedrock, and Messages inside its invocations."""
