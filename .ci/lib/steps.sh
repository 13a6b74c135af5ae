# shellcheck shell=bash
# Runs the steps of CI in two parallel rows, and prints the result of each step and the totals.

work=$(mktemp -d)
# In the checkout, since containers see no other folder of this machine.
readonly reports=build/ci
row=$work/main # prefix of the files of the current row
parallel=''    # process group of the other row
report=''      # prefix of the current step's JUnit files, relative to the root of the checkout
passed=0       # number of passed tests of the previous step

start_rows() {
    rm -rf "$reports"
    mkdir -p "$reports"
    chown --reference=. build "$reports" # containers write as the owner of the checkout
    touch "$row.counts" "$row.broken"
    trap finish EXIT
}

finish() {
    local passed failed skipped
    [ -z "$parallel" ] || kill -- "-$parallel" 2>/dev/null || true
    read -r passed failed skipped < <(awk '{ p += $1; f += $2; s += $3 } END { print p + 0, f + 0, s + 0 }' "$work"/*.counts)
    printf '\n'
    cat "$work"/*.broken "$work"/*.notes 2>/dev/null || true
    rm -rf "$work"
    printf 'total %d s\n%d passed, %d failed, %d skipped\n' "$SECONDS" "$passed" "$failed" "$skipped"
    [ "$failed" -eq 0 ] && [ "$passed" -gt 0 ] || exit 1
}

# note LABEL WHY PASSED FAILED SKIPPED: adds a step to the totals. WHY is empty if nothing failed.
note() {
    echo "$3 $4 $5" >>"$row.counts"
    [ -z "$2" ] || echo "failed: $1 ($2)" >>"$row.broken"
}

# remember LINE: prints a line now and again at the end.
remember() { tee -a "$row.notes" <<<"$1"; }

# step LABEL COMMAND...: runs a step. If it fails, it counts as a failure and the next steps still run. Tests that the
# command runs write their JUnit files to $report.xml, or to $report.ANYTHING.xml.
step() {
    local label=$1 start=$SECONDS status failed skipped why='' files
    shift
    report=$reports/${label//[^[:alnum:]]/-}
    printf '\n==> %s\n' "$label"
    set +e # not `if (...)`: inside a condition, the subshell would ignore `set -e`
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

# tests LABEL COMMAND...: runs a step that must run tests. It also fails if no test passed.
tests() {
    step "$@"
    [ "$passed" -gt 0 ] || note "$1" "no test passed" 0 1 0
}

# in_parallel FUNCTION: starts a row of steps in its own process group. `join` waits for it and prints its output.
in_parallel() {
    row=$work/parallel
    touch "$row.counts" "$row.broken"
    set -m
    "$1" >"$row.output" 2>&1 &
    set +m
    parallel=$! row=$work/main
}

join() {
    local status=0
    wait "$parallel" || status=$?
    parallel=''
    cat "$work/parallel.output"
    [ "$status" -eq 0 ] || note "the parallel steps" "exit code $status" 0 1 0
}
