"""What a broker puts on its metrics page, subject by subject. Runs on the page's thread and changes nothing."""
