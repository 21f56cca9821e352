module upheld/relay

go 1.25
