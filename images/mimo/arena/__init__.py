"""The OpenEnv adapter that runs inside an image, as root, and plays one episode at a time for UID 2000.

Reading order: models (what goes over the wire), frames and server (the framework, and what we put before it), episode
(the rules of any episode), shell and processes (a command, and nothing left of it), cleanup, places and tree (a reset),
repair, grade and guard (the repository repair). Another image's package reuses all but the last three.
"""
