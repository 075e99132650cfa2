"""The command line of agenthost."""
