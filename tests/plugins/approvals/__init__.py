"""Tests of agenthost_approvals."""
