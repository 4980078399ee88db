"""Evidence as people read it: report.md and report.html, made from records alone."""
