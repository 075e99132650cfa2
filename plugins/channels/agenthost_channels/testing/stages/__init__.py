"""The stages of channels whose services are simulated, to certify them on."""
