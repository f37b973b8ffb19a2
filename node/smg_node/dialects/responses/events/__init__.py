"""Events of the Responses API: events and objects that go to the client."""
