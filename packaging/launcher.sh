#!/bin/sh
# kafkapy in one file. What follows this script is unpacked once for each build, and run from there ever after:
# in $KAFKAPY_CACHE; else in /var/cache/kafkapy, if that can be written to; else in ~/.cache/kafkapy.
build=@BUILD@
skip=@SKIP@ # bytes of this script, which the archive follows
first=/var/cache/kafkapy
second=${XDG_CACHE_HOME:-${HOME:-}/.cache}/kafkapy
if [ -n "${KAFKAPY_CACHE:-}" ]; then
  first=$KAFKAPY_CACHE
  second=$first
fi

fail() {
  echo "kafkapy: $*" >&2
  exit 1
}

run_from() { # FOLDER ARGUMENTS...
  program=$1/$build/kafkapy
  shift
  [ -x "$program" ] && exec "$program" "$@"
}

unpack_in() { # FOLDER
  [ -e "$1/$build" ] && return # another one has done it meanwhile
  mkdir -p "$1" 2>/dev/null && new=$(mktemp -d "$1/.$build.XXXXXX" 2>/dev/null) || return
  if ! tail -c "+$((skip + 1))" "$0" | tar -xzof - -C "$new"; then
    rm -rf "$new"
    fail "$0 could not be unpacked in $1: it is damaged, or there is no room"
  fi
  chmod 755 "$new"
  # whoever is first wins: both are the same
  mv -T "$new" "$1/$build" 2>/dev/null || rm -rf "$new"
}

export KAFKAPY_PROGRAM="$0"
run_from "$first" "$@"
run_from "$second" "$@"
unpack_in "$first" && run_from "$first" "$@"
unpack_in "$second" && run_from "$second" "$@"
fail "$first and $second: cannot be written to, or not run from (noexec); name a folder in KAFKAPY_CACHE"
