# Installs what is missing to run kafkapy (`set_up broker`) or its tests (`set_up tests`), and builds it in place.
# Sourced by run-broker and run-tests; sets ROOT and PYTHON. Prints nothing when there is nothing to do.

ROOT=$(cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/.." && pwd)
VENV=$ROOT/.venv
PYTHON=$VENV/bin/python
SET_UP_LOG=$ROOT/.set-up.log

say() { echo "kafkapy set-up: $*" >&2; }

# Runs a command silently. If it fails, prints the end of its output and exits.
quietly() {
  if ! "$@" >>"$SET_UP_LOG" 2>&1; then
    say "failed: $*"
    tail -n 30 "$SET_UP_LOG" >&2
    exit 1
  fi
}

can_install() { [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; }

# Prints the path of the first Python that is new enough; fails if there is none.
find_python() {
  local candidate
  for candidate in "${KAFKAPY_PYTHON:-}" python3 python3.14 python3.13 python3.12 python3.11; do
    if [ -n "$candidate" ] && "$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
      command -v "$candidate"
      return
    fi
  done
  return 1
}

# Installs the system's Python on a machine that has none; an old one is left to the user.
install_python() {
  if ! command -v python3 >/dev/null && can_install; then
    say "installing python3"
    apt_install python3 python3-dev python3-venv
    find_python >/dev/null && return 0
  fi
  say "no Python 3.11 or newer found; install one (Debian's and Ubuntu's name: python3), or name it in KAFKAPY_PYTHON"
  exit 1
}

apt_install() {
  quietly apt-get update -q
  quietly env DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends "$@"
}

# Prints the system packages that are missing, judged by the files and programs that they contain.
missing_packages() {
  local kind=$1 python=$2 names=()
  command -v gcc >/dev/null && [ -e /usr/include/stdlib.h ] || names+=(gcc libc6-dev)
  "$python" -c 'import os, sysconfig; os.stat(os.path.join(sysconfig.get_paths()["include"], "Python.h"))' \
    2>/dev/null || names+=(python3-dev)
  "$python" -c 'import ensurepip, venv' 2>/dev/null || names+=(python3-venv)
  if [ "$kind" = tests ]; then
    command -v javac >/dev/null || names+=(default-jdk-headless)
    command -v mvn >/dev/null || names+=(maven)
    command -v chromium >/dev/null || names+=(chromium)
    command -v kcat >/dev/null || names+=(kcat)
    [ -f /usr/include/openssl/ssl.h ] || names+=(libssl-dev)
    [ -f /usr/include/librdkafka/rdkafka.h ] || names+=(librdkafka-dev)
    [ -x /usr/sbin/krb5kdc ] && [ -x /usr/sbin/kadmin.local ] && command -v kinit >/dev/null &&
      compgen -G "/usr/lib/*/sasl2/libgssapiv2.so" >/dev/null ||
      names+=(krb5-kdc krb5-admin-server krb5-user libsasl2-modules-gssapi-mit)
    command -v git >/dev/null || names+=(git)
    command -v node >/dev/null || names+=(nodejs)
    command -v npm >/dev/null || names+=(npm)
    command -v go >/dev/null || names+=(golang-go)
    compgen -G "/usr/lib/postgresql/*/bin/postgres" >/dev/null || names+=(postgresql)
    command -v redis-server >/dev/null || names+=(redis-server)
    command -v systemd-analyze >/dev/null || names+=(systemd)
    [ -x /usr/sbin/logrotate ] || names+=(logrotate)
    command -v zsh >/dev/null || names+=(zsh)
    command -v fish >/dev/null || names+=(fish)
    command -v unshare >/dev/null || names+=(util-linux)
  fi
  echo "${names[*]:-}"
}

install_packages() {
  local kind=$1 python=$2 names
  names=$(missing_packages "$kind" "$python")
  [ -n "$names" ] || return 0
  if ! can_install; then
    say "these system packages are missing (Debian's and Ubuntu's names); install them and run this again:"
    say "  apt-get install $names"
    exit 1
  fi
  say "installing $names"
  # shellcheck disable=SC2086  # a list of names
  apt_install $names
  names=$(missing_packages "$kind" "$python")
  [ -z "$names" ] || { say "still missing after the installation: $names"; exit 1; }
}

# Prints a checksum over everything that the build depends on: paths, sizes and times of the sources.
# The generated files are left out: a build writes them, so that they differ after it.
sources_state() {
  (
    cd "$ROOT"
    find setup.py kafkapy -path kafkapy/protocol/messages -prune -o -name request_versions.pxd -prune -o \
      \( -name '*.pyx' -o -name '*.pxd' -o -name '*.h' -o -name 'crc32c_*.c' -o -name setup.py \
      -o -name '*.msg' -o -path 'kafkapy/protocol/generator*.py' \) \
      -printf '%p %s %T@\n' | sort | cksum
  )
}

install_python_packages() {
  local kind=$1 python=$2 extra="" stamp=$VENV/.set-up-$1 wanted
  wanted=$(cksum <"$ROOT/pyproject.toml")
  [ "$(cat "$stamp" 2>/dev/null)" = "$wanted" ] && return 0
  # The tests' packages include those of the broker.
  [ "$kind" = broker ] && [ "$(cat "$VENV/.set-up-tests" 2>/dev/null)" = "$wanted" ] && return 0
  [ "$kind" = tests ] && extra="[test]"
  say "installing Python packages"
  [ -x "$PYTHON" ] || quietly "$python" -m venv "$VENV"
  quietly "$PYTHON" -m pip install -q "setuptools>=70" "cython>=3.1,<4"
  # The compat mode links by a plain path, which precedes a folder named `kafkapy` next to a user's script.
  quietly env KAFKAPY_LINK_ONLY=1 "$PYTHON" -m pip install -q --no-build-isolation \
    --config-settings editable_mode=compat -e "$ROOT$extra"
  echo "$wanted" >"$stamp"
}

build() {
  local stamp=$VENV/.built state
  state=$(sources_state)
  [ "$(cat "$stamp" 2>/dev/null)" = "$state" ] && return 0
  say "compiling (a minute or two the first time)"
  (cd "$ROOT" && quietly "$PYTHON" setup.py -q build_ext --inplace -j "$(nproc)")
  echo "$state" >"$stamp"
}

set_up() {
  local kind=$1 python
  : >"$SET_UP_LOG"
  python=$(find_python) || { install_python; python=$(find_python); }
  install_packages "$kind" "$python"
  install_python_packages "$kind" "$python"
  build
}

# Runs one set-up at a time; the lock is released when the set-up is complete.
set_up_once() {
  exec 9>"$ROOT/.set-up.lock"
  flock 9
  set_up "$1"
  exec 9>&-
}
