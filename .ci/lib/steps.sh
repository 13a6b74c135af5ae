# shellcheck shell=bash
# The steps of CI: two rows of them beside each other, what came of each, and the sum at the end.

work=$(mktemp -d)
# In the checkout, since containers see no other folder of this machine.
readonly reports=build/ci
row=$work/main # what the steps that run now write their files to
beside=''      # the process group of the other row
report=''      # where the step that runs now writes what its tests did, from the root of the checkout
passed=0       # tests of the step before

start_rows() {
    rm -rf "$reports"
    mkdir -p "$reports"
    chown --reference=. build "$reports" # as whom containers write
    touch "$row.counts" "$row.broken"
    trap finish EXIT
}

finish() {
    local passed failed skipped
    [ -z "$beside" ] || kill -- "-$beside" 2>/dev/null || true
    read -r passed failed skipped < <(awk '{ p += $1; f += $2; s += $3 } END { print p + 0, f + 0, s + 0 }' "$work"/*.counts)
    printf '\n'
    cat "$work"/*.broken "$work"/*.notes 2>/dev/null || true
    rm -rf "$work"
    printf 'total %d s\n%d passed, %d failed, %d skipped\n' "$SECONDS" "$passed" "$failed" "$skipped"
    [ "$failed" -eq 0 ] && [ "$passed" -gt 0 ] || exit 1
}

# note LABEL WHY PASSED FAILED SKIPPED: what the last lines sum up; WHY is empty where nothing failed.
note() {
    echo "$3 $4 $5" >>"$row.counts"
    [ -z "$2" ] || echo "failed: $1 ($2)" >>"$row.broken"
}

# remember LINE: shown again at the end, where everyone looks.
remember() { tee -a "$row.notes" <<<"$1"; }

# step LABEL COMMAND...: a step that fails counts as a failure, and the next ones are still run. Tests that the command
# runs write their JUnit files to $report.xml, or to $report.ANYTHING.xml.
step() {
    local label=$1 start=$SECONDS status failed skipped why='' files
    shift
    report=$reports/${label//[^[:alnum:]]/-}
    printf '\n==> %s\n' "$label"
    set +e # a subshell that stands in a condition would go on after a failure
    (
        set -e
        "$@"
    ) </dev/null 2>&1
    status=$?
    set -e
    mapfile -t files < <(compgen -G "$report.*xml" || true)
    read -r passed failed skipped < <(.ci/junit counts "${files[@]}" || echo 0 1 0)
    if [ "$status" -ne 0 ]; then
        why="exit code $status"
        failed=$((failed > 0 ? failed : 1))
    elif [ "$failed" -gt 0 ]; then
        why="failed tests"
    fi
    note "$label" "$why" "$passed" "$failed" "$skipped"
    printf -- '--- %s: %d s, exit code %d, %d passed, %d failed, %d skipped\n' \
        "$label" "$((SECONDS - start))" "$status" "$passed" "$failed" "$skipped"
}

# tests LABEL COMMAND...: a step that must have run tests; none that passed is a failure too.
tests() {
    step "$@"
    [ "$passed" -gt 0 ] || note "$1" "no test passed" 0 1 0
}

# beside FUNCTION: starts a row of steps in a process group of its own; `join` waits for it and shows what it printed.
beside() {
    row=$work/beside
    touch "$row.counts" "$row.broken"
    set -m
    "$1" >"$row.output" 2>&1 &
    set +m
    beside=$! row=$work/main
}

join() {
    local status=0
    wait "$beside" || status=$?
    beside=''
    cat "$work/beside.output"
    [ "$status" -eq 0 ] || note "the steps beside" "exit code $status" 0 1 0
}
