#!/usr/bin/env bash
# Creates environments in steps, each of which may be repeated:
#   setup.sh packages .venv   the environment itself and every pinned package
#   setup.sh project .venv    this project in it, editable, with the lakehelm command
#   setup.sh locked .venv-x F an environment beside it, from the hash-locked requirements F
set -euo pipefail

step="$1"
venv="$2"
export PIP_DISABLE_PIP_VERSION_CHECK=1

say() { echo "setup: $*" >&2; }

find_python() {
  local candidate
  for candidate in ${PYTHON:-} python3.11 /usr/bin/python3.11 python3 python; do
    if "$candidate" -c 'import sys; sys.exit(sys.version_info[:2] != (3, 11))' 2>/dev/null; then
      echo "$candidate"
      return
    fi
  done
  say "Python 3.11 is missing. Debian/Ubuntu: apt-get install python3.11 python3.11-venv;"
  say "macOS: brew install python@3.11; or name it: make setup PYTHON=/path/to/python3.11"
  exit 2
}

make_venv() {
  local python
  if "$venv/bin/python" -c 'import sys, pip; sys.exit(sys.version_info[:2] != (3, 11))' 2>/dev/null; then
    return
  fi
  python="$(find_python)"
  say "creating $venv with $("$python" --version)"
  if ! "$python" -m venv --clear "$venv"; then
    say "$python cannot make virtual environments. Debian/Ubuntu: apt-get install python3.11-venv"
    exit 2
  fi
}

case "$step" in
  packages)
    make_venv
    command -v git >/dev/null || say "note: git is missing; apt-get install git"
    say "installing $(grep -c '==' requirements.txt) packages (about 1 GB the first time; pip keeps its downloads)"
    "$venv/bin/python" -m pip install --requirement requirements.txt
    ;;
  project)
    say "installing the lakehelm command"
    # The pinned setuptools builds it: no second, unpinned download behind pip's back.
    PYTHONWARNINGS=ignore "$venv/bin/python" -m pip install --quiet --no-build-isolation --no-deps --editable .
    say "ready: $venv/bin/lakehelm --help"
    ;;
  locked)
    # An environment for something that cannot share ours, every file of it checked by its hash.
    make_venv
    say "installing $(grep -c '==' "$3") packages into $venv"
    "$venv/bin/python" -m pip install --quiet --require-hashes --requirement "$3"
    ;;
  *)
    say "unknown step: $step (packages, project or locked)"
    exit 2
    ;;
esac
