"""What is inside an image, from the image's own files: layers -> merged root -> packages -> CycloneDX 1.6 bytes.

Reading order: `tar` (one layer's entries), `rootfs` (the merged root), `package` (what was found), `debian`, `python`
and `conda` (one reader an ecosystem), `licences`, `graph`, `subject`, `components`, `document` (the SBOM), `view`
(reading and checking one).
Pure: no network, no process, no clock, and nothing of the image is executed.
"""
