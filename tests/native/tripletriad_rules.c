/* Triple Triad: which cards are taken by one that is laid. Stops with a sentence at the first that is wrong.
 */
#include <stdio.h>
#include <stdlib.h>

#include "tripletriad/tripletriad.h"

typedef struct {
    const char *what;
    const char *before; /* nine cells: o own, r the rival's, . empty */
    const char *cards;  /* nine digits: the four values of the card on the cell are alike */
    int32_t cell;       /* where the own card is laid, with values north, south, east, west: */
    TripleTriadCard card;
    const char *after;
} Case;

/* clang-format off */
static const Case cases[] = {
    {"weaker neighbours on all sides are taken", ".r.r.r.r.", "030405060", 4, {{4, 7, 6, 5}}, ".o.ooo.o."},
    {"each side is compared with the one that it touches", ".r.r.r.r.", "030405060", 4, {{7, 5, 4, 6}}, ".o.oor.r."},
    {"equal values take nothing", ".r.r.r.r.", "040404040", 4, {{4, 4, 4, 4}}, ".r.ror.r."},
    {"stronger neighbours stay, and take nothing by themselves", ".r.r.r.r.", "070707070", 4, {{1, 1, 1, 1}}, ".r.ror.r."},
    {"own neighbours stay own", ".o.o.....", "010100000", 4, {{7, 7, 7, 7}}, ".o.oo...."},
    {"diagonal neighbours are none", "r.r...r.r", "101000101", 4, {{7, 7, 7, 7}}, "r.r.o.r.r"},
    {"a card that is taken takes no other", "..rr.....", "001700000", 0, {{7, 7, 7, 7}}, "o.rr....."},
    {"a chain ends with its first card", "..r..r...", "002005000", 8, {{7, 7, 7, 7}}, "..r..o..o"},
    {"the east of a row does not touch the west of the next", "...r.....", "000100000", 2, {{7, 7, 7, 7}}, "..or....."},
    {"the west of a row does not touch the east of the last", "..r......", "001000000", 3, {{7, 7, 7, 7}}, "..ro....."},
    {"in a corner two sides count", ".....r.r.", "000001010", 8, {{7, 1, 1, 7}}, ".....o.oo"},
};
/* clang-format on */

static void fail(const char *what) {
    fprintf(stderr, "tripletriad: %s: not so\n", what);
    exit(1);
}

static int owner_of(char cell) {
    return cell == 'o' ? TRIPLETRIAD_OWN : cell == 'r' ? TRIPLETRIAD_RIVAL : TRIPLETRIAD_NOBODY;
}

static void check_case(const Case *one) {
    float observations[TRIPLETRIAD_OBSERVED], reward = 0;
    TripleTriad env = {.game = {.observations = observations, .rewards = &reward},
                       .max_value = 7,
                       .max_actions = 30,
                       .reward_per_card = 0.5f};
    int points[2] = {TRIPLETRIAD_HAND, TRIPLETRIAD_HAND};
    tripletriad_reset(&env);
    for (int cell = 0; cell < TRIPLETRIAD_CELLS; cell++) {
        if (one->before[cell] == '.') continue;
        env.owners[cell] = (uint8_t)owner_of(one->before[cell]);
        env.empty &= (uint16_t)~(1 << cell);
        memset(&env.board[cell], one->cards[cell] - '0', sizeof(TripleTriadCard));
    }
    env.hands[TRIPLETRIAD_OWN][0] = one->card;
    tripletriad_place_card(&env, TRIPLETRIAD_OWN, 0, one->cell);
    for (int cell = 0; cell < TRIPLETRIAD_CELLS; cell++) {
        const bool taken = one->before[cell] == 'r' && one->after[cell] == 'o';
        if (env.owners[cell] != owner_of(one->after[cell])) fail(one->what);
        if ((env.taken >> cell & 1) != taken) fail(one->what);
        points[TRIPLETRIAD_OWN] += taken;
        points[TRIPLETRIAD_RIVAL] -= taken;
    }
    if (env.points[0] != points[0] || env.points[1] != points[1]) fail("a card that is taken moves a point");
    if (reward != 0.5f * (float)(points[0] - TRIPLETRIAD_HAND))
        fail("a card that is taken pays reward_per_card");
}

int main(void) {
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) check_case(&cases[i]);
    return 0;
}
