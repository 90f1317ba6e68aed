"""Results of other tools, judged with the same rules: read, named, framed, compared unpaired."""
