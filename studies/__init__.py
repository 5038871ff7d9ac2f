"""Questions: each study is a Config, its cells, and a report."""
