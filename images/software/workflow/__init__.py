"""32 procedural workflow cases: eight families, generated and graded in server memory."""
