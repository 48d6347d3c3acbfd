"""The static site of a team's runs: pages that need no server, rebuilt from one compact record a run."""
