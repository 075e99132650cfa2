"""The stages that channels of ours are certified on: a simulator or a real server."""
