/* The rules of Neural MMO 3, in positions made by hand: tables of cases, and random play in which gold, items
 * and the map must add up. Prints what is wrong and stops, or prints nothing. Built with the sanitizers. */
#include <stdio.h>

#include "nmmo3/nmmo3.c"
#include "puffer_batch.h"

const PufferEnvType *const puffer_env_types[] = {&nmmo3_env, NULL};

enum { ROW = NMMO3_VIEW + NMMO3_SELF + NMMO3_FLAGS, MAX_PLAYERS = 16, X = 20, Y = 18, MANY = 1000 };

static PufferBatch batch;
static uint8_t observations[MAX_PLAYERS * ROW], finals[MAX_PLAYERS * ROW];
static int32_t actions[MAX_PLAYERS];
static float rewards[MAX_PLAYERS];
static bool terminals[MAX_PLAYERS], truncations[MAX_PLAYERS], masks[MAX_PLAYERS];

static const char *chapter = "";
static int32_t row; /* of the table of cases */

#define EXPECT(got, want)                                                                                  \
    do {                                                                                                   \
        const double got_ = (double)(got), want_ = (double)(want);                                         \
        if (got_ != want_) {                                                                               \
            fprintf(stderr, "%s, case %d, line %d: %s is %g, not %g\n", chapter, (int)row, __LINE__, #got, \
                    got_, want_);                                                                          \
            exit(1);                                                                                       \
        }                                                                                                  \
    } while (0)

/* ---- Worlds --------------------------------------------------------------------------------------- */

static void set(PufferValue *values, const char *name, double value) {
    for (int32_t i = 0; i < nmmo3_env.num_parameters; i++) {
        if (strcmp(nmmo3_env.parameters[i].name, name) == 0) values[i].number = value;
    }
}

/* A new game of 40 x 40 tiles in which nobody is teleported. */
static Nmmo3 *new_world(int32_t players, int32_t enemies, uint64_t seed) {
    PufferValue values[64];
    for (int32_t i = 0; i < nmmo3_env.num_parameters; i++) values[i].number = nmmo3_env.parameters[i].value;
    set(values, "width", 40);
    set(values, "height", 40);
    set(values, "num_players", players);
    set(values, "num_enemies", enemies);
    set(values, "teleport_chance", 0);
    if (batch.games != NULL) puffer_batch_destroy(&batch);
    if (puffer_batch_create(&batch, &nmmo3_env, 1, values) != NULL || batch.games == NULL) abort();
    batch.observations = (char *)observations, batch.final_observations = (char *)finals;
    batch.actions = (char *)actions, batch.rewards = rewards;
    batch.terminals = terminals, batch.truncations = truncations, batch.masks = masks;
    puffer_batch_bind(&batch);
    puffer_seed(&puffer_game(&batch, 0)->rng, seed);
    batch.type->reset(&batch, 0, 1);
    return (Nmmo3 *)puffer_game(&batch, 0);
}

/* The same, but all grass and bare, with everybody in the four corners, out of the way of (X, Y). */
static Nmmo3 *new_meadow(int32_t players, int32_t enemies) {
    Nmmo3 *env = new_world(players, enemies, 1);
    for (int32_t y = NMMO3_BORDER_Y; y < env->height - NMMO3_BORDER_Y; y++) {
        for (int32_t x = NMMO3_BORDER_X; x < env->width - NMMO3_BORDER_X; x++) {
            uint8_t *codes = nmmo3_codes(env, nmmo3_tile(env, x, y));
            memset(codes, 0, NMMO3_KIND);
        }
    }
    for (int32_t i = 0; i < players; i++) nmmo3_move_to(env, &env->players[i].body, 7 + i, 34);
    for (int32_t i = 0; i < enemies; i++) {
        nmmo3_move_to(env, &env->enemies[i].body, 32 - i, 5);
        env->enemies[i].home_x = (uint16_t)(32 - i);
        env->enemies[i].home_y = 5;
    }
    return env;
}

static void step(const int32_t *chosen, int32_t count) {
    for (int32_t i = 0; i < MAX_PLAYERS; i++) actions[i] = i < count ? chosen[i] : NMMO3_STAY;
    batch.type->step(&batch, 0, 1);
}

/* Let player 0 act, the others stay. */
static void act(int32_t action) {
    step(&action, 1);
}

static void press(int32_t key) {
    act(NMMO3_KEY_1 + key - 1);
}

static void put_player(Nmmo3 *env, int32_t agent, int32_t x, int32_t y) {
    nmmo3_move_to(env, &env->players[agent].body, x, y);
}

/* Enemy `index` of this level at (x, y), at home there. */
static Nmmo3Enemy *put_enemy(Nmmo3 *env, int32_t index, int32_t x, int32_t y, int32_t level) {
    Nmmo3Enemy *enemy = &env->enemies[index];
    nmmo3_move_to(env, &enemy->body, x, y);
    enemy->home_x = (uint16_t)x;
    enemy->home_y = (uint16_t)y;
    enemy->body.combat = (uint8_t)level;
    enemy->body.element = NMMO3_NEUTRAL;
    enemy->is_ranged = level >= NMMO3_RANGED_LEVEL;
    return enemy;
}

static void put_ground(Nmmo3 *env, int32_t x, int32_t y, int32_t item) {
    nmmo3_put_item(env, nmmo3_tile(env, x, y), item);
}

/* ---- Combat ----------------------------------------------------------------------------------------- */

static void test_damage(void) {
    enum { P = NMMO3_PLAYER, E = NMMO3_ENEMY, N = NMMO3_NEUTRAL };
    enum { EARTH = NMMO3_EARTH, FIRE = NMMO3_FIRE, AIR = NMMO3_AIR, AQUA = NMMO3_AQUA };
    static const struct {
        int32_t kind, level, attack, element, other_kind, other_level, defence, other_element, damage;
    } cases[] = {
        {P, 1, 0, N, E, 1, 0, N, 40 + 2 - 5},
        {E, 1, 0, N, P, 1, 0, N, 40 + 2 + 3 - 25 - 2},
        {P, 10, 48, N, E, 12, 0, N, 40 + 20 + 48 - 60},
        {E, 20, 0, N, P, 5, 24, N, 40 + 40 + 60 - 25 - 10 - 24},
        {P, 1, 0, N, E, 9, 0, N, 0}, /* 42 - 45 */
        {P, 1, 0, N, E, 8, 0, N, 2},
        {P, 1, 24, FIRE, E, 1, 0, AIR, 2 * 61},
        {P, 1, 24, AIR, E, 1, 0, FIRE, 0},
        {P, 1, 24, AIR, E, 1, 0, EARTH, 2 * 61},
        {P, 1, 24, EARTH, E, 1, 0, AIR, 0},
        {P, 1, 24, EARTH, E, 1, 0, AQUA, 2 * 61},
        {P, 1, 24, AQUA, E, 1, 0, EARTH, 0},
        {P, 1, 24, AQUA, E, 1, 0, FIRE, 2 * 61},
        {P, 1, 24, FIRE, E, 1, 0, AQUA, 0},
        {P, 1, 24, FIRE, E, 1, 0, EARTH, 61},
        {P, 1, 24, EARTH, E, 1, 0, FIRE, 61},
        {P, 1, 24, AIR, E, 1, 0, AQUA, 61},
        {P, 1, 24, AQUA, E, 1, 0, AIR, 61},
        {P, 1, 24, FIRE, E, 1, 0, FIRE, 61},
        {P, 1, 24, N, E, 1, 0, FIRE, 61},
        {P, 1, 24, FIRE, E, 1, 0, N, 61},
    };
    chapter = "damage";
    for (row = 0; row < (int32_t)(sizeof cases / sizeof *cases); row++) {
        const Nmmo3Body attacker = {.kind = (uint8_t)cases[row].kind,
                                    .combat = (uint8_t)cases[row].level,
                                    .attack = (int16_t)cases[row].attack,
                                    .element = (uint8_t)cases[row].element};
        const Nmmo3Body defender = {.kind = (uint8_t)cases[row].other_kind,
                                    .combat = (uint8_t)cases[row].other_level,
                                    .defence = (int16_t)cases[row].defence,
                                    .element = (uint8_t)cases[row].other_element};
        EXPECT(nmmo3_damage(&attacker, &defender), cases[row].damage);
    }
}

/* Tiles that a weapon reaches, and the direction in which the player then looks; -1 for no hit. */
static void test_reach(void) {
    enum { D = NMMO3_DOWN, U = NMMO3_UP, R = NMMO3_RIGHT, L = NMMO3_LEFT };
    enum { FIST = 0, TOOL = NMMO3_TOOL, SWORD = NMMO3_SWORD, BOW = NMMO3_BOW };
    static const struct {
        int32_t held, x, y, facing;
    } cases[] = {
        {FIST, 0, 1, D},   {FIST, 0, -1, U},  {FIST, 1, 0, R},   {FIST, -1, 0, L},   {FIST, 1, 1, -1},
        {FIST, 0, 2, -1},  {TOOL, 0, 1, D},   {TOOL, 2, 0, -1},  {TOOL, -1, -1, -1}, {SWORD, 0, 1, D},
        {SWORD, 1, 1, D},  {SWORD, -1, 1, D}, {SWORD, 1, -1, U}, {SWORD, -1, -1, U}, {SWORD, 1, 0, R},
        {SWORD, -1, 0, L}, {SWORD, 2, 0, -1}, {BOW, 0, 1, D},    {BOW, 0, 4, D},     {BOW, 0, -4, U},
        {BOW, 4, 0, R},    {BOW, -3, 0, L},   {BOW, 0, 5, -1},   {BOW, 1, 1, -1},
    };
    chapter = "reach";
    for (row = 0; row < (int32_t)(sizeof cases / sizeof *cases); row++) {
        Nmmo3 *env = new_meadow(1, 1);
        Nmmo3Player *player = &env->players[0];
        put_player(env, 0, X, Y);
        Nmmo3Enemy *enemy = put_enemy(env, 0, X + cases[row].x, Y + cases[row].y, 1);
        if (cases[row].held) player->worn[NMMO3_HAND] = (uint8_t)nmmo3_item(cases[row].held, 1);
        nmmo3_attack(env, 0);
        EXPECT(enemy->body.hp < 99, cases[row].facing >= 0);
        EXPECT(player->body.in_combat, cases[row].facing >= 0 ? 5 : 0);
        if (cases[row].facing >= 0) EXPECT(player->body.facing, cases[row].facing);
    }
}

/* A win over an enemy: the level of the player after it, gold, and the tier of the tool. */
static void test_wins(void) {
    static const struct {
        int32_t mine, its, after, gold, tier;
    } cases[] = {
        {1, 1, 2, 1, 1},    {5, 5, 6, 1, 1},    {6, 5, 6, 1, 1},    {1, 8, 2, 1, 1},    {9, 9, 10, 1, 2},
        {10, 10, 11, 2, 2}, {1, 16, 2, 2, 2},   {1, 17, 2, 2, 3},   {30, 29, 30, 3, 3}, {30, 32, 31, 4, 3},
        {30, 33, 31, 4, 4}, {39, 40, 40, 5, 4}, {40, 40, 40, 5, 4},
    };
    chapter = "wins";
    for (row = 0; row < (int32_t)(sizeof cases / sizeof *cases); row++) {
        Nmmo3 *env = new_meadow(1, 1);
        Nmmo3Player *player = &env->players[0];
        put_player(env, 0, X, Y);
        put_enemy(env, 0, X + 1, Y, cases[row].its)->body.hp = 1;
        player->body.combat = (uint8_t)cases[row].mine;
        player->body.attack = 200;
        act(NMMO3_ATTACK);
        EXPECT(player->body.combat, cases[row].after);
        EXPECT(rewards[0], cases[row].after - cases[row].mine);
        EXPECT(observations[NMMO3_VIEW + NMMO3_SELF + NMMO3_COMBAT_ROSE], cases[row].after - cases[row].mine);
        EXPECT(player->gold, cases[row].gold);
        EXPECT(nmmo3_item_at(env, nmmo3_tile(env, X + 1, Y)), nmmo3_item(NMMO3_TOOL, cases[row].tier));
    }
}

static void test_gold_has_a_limit(void) {
    Nmmo3 *env = new_meadow(1, 1);
    chapter = "gold", row = 0;
    put_player(env, 0, X, Y);
    put_enemy(env, 0, X, Y + 1, 40)->body.hp = 1;
    env->players[0].gold = 97;
    env->players[0].body.attack = 400;
    act(NMMO3_ATTACK);
    EXPECT(env->players[0].gold, 99);
    EXPECT(env->totals.gold_won, 5);
    EXPECT(env->totals.gold_lost, 3);
}

/* A fight by the rules: three blows of 37 against 99 hp, and 18 back each time, 1 hp regained a step. */
static void test_a_fight(void) {
    Nmmo3 *env = new_meadow(1, 1);
    chapter = "fight";
    put_player(env, 0, X, Y);
    Nmmo3Body *enemy = &put_enemy(env, 0, X - 1, Y, 1)->body, *player = &env->players[0].body;
    const int32_t its[] = {99 - 37 + 1, 63 - 37 + 1, 0}, mine[] = {99 - 18, 81 + 1 - 18, 64 + 1};
    for (row = 0; row < 3; row++) {
        act(NMMO3_ATTACK);
        EXPECT(enemy->hp, its[row]);
        EXPECT(player->hp, mine[row]);
    }
    EXPECT(enemy->animation, NMMO3_DIES);
    put_player(env, 0, 7, 34); /* before it comes back */
    for (row = 5; row >= 0; row--) {
        EXPECT(player->in_combat, row);
        act(NMMO3_STAY);
    }
}

/* ---- Enemies ---------------------------------------------------------------------------------------- */

/* Reaction of an enemy to a player at (x, y) from it: its step, or a strike. */
static void test_aggro(void) {
    static const struct {
        int32_t level, x, y, go_x, go_y;
        bool strikes;
    } cases[] = {
        {1, 1, 0, 0, 0, true},   {1, 0, -1, 0, 0, true},    {1, 1, 1, 0, 1, false},   {1, 4, 4, 0, 1, false},
        {1, 4, 1, 1, 0, false},  {1, -4, 0, -1, 0, false},  {1, 2, -3, 0, -1, false}, {14, 3, 0, 1, 0, false},
        {15, 1, 0, 0, 0, true},  {15, 4, 0, 0, 0, true},    {15, 0, -4, 0, 0, true},  {15, 0, 3, 0, 0, true},
        {15, 3, 1, 0, 1, false}, {15, -1, 3, -1, 0, false}, {15, 2, 2, 1, 0, false},
    };
    chapter = "aggro";
    for (row = 0; row < (int32_t)(sizeof cases / sizeof *cases); row++) {
        Nmmo3 *env = new_meadow(1, 1);
        Nmmo3Body *enemy = &put_enemy(env, 0, X, Y, cases[row].level)->body;
        put_player(env, 0, X + cases[row].x, Y + cases[row].y);
        act(NMMO3_STAY);
        EXPECT(enemy->x, X + cases[row].go_x);
        EXPECT(enemy->y, Y + cases[row].go_y);
        EXPECT(env->players[0].body.hp < 99, cases[row].strikes);
        EXPECT(env->players[0].body.in_combat, cases[row].strikes ? 5 : 0);
        if (cases[row].strikes)
            EXPECT(enemy->animation, cases[row].level < 15 ? NMMO3_SLASHES : NMMO3_SHOOTS);
    }
}

static void test_enemies_stray_around_their_home(void) {
    Nmmo3 *env = new_meadow(1, 1);
    Nmmo3Enemy *enemy = put_enemy(env, 0, X, Y, 1);
    int32_t farthest = 0, moved = 0;
    chapter = "wander", row = 0;
    for (int32_t i = 0; i < MANY; i++) {
        const int32_t x = enemy->body.x, y = enemy->body.y;
        env->players[0].stale = 0;
        act(NMMO3_STAY);
        moved += x != enemy->body.x || y != enemy->body.y;
        farthest = nmmo3_greater(farthest, nmmo3_distance(enemy->body.x, X));
        farthest = nmmo3_greater(farthest, nmmo3_distance(enemy->body.y, Y));
    }
    EXPECT(farthest, NMMO3_WANDER);
    EXPECT(moved > MANY / 2, 1);
    nmmo3_move_to(env, &enemy->body, X + 9, Y);
    for (int32_t i = 0; i < MANY; i++) {
        env->players[0].stale = 0;
        act(NMMO3_STAY);
        EXPECT(nmmo3_distance(enemy->body.x, X) <= 9, 1);
    }
    EXPECT(nmmo3_distance(enemy->body.x, X) <= NMMO3_WANDER, 1);
}

static void test_the_beaten_come_back(void) {
    Nmmo3 *env = new_meadow(1, 1);
    chapter = "respawn", row = 0;
    put_player(env, 0, X, Y);
    Nmmo3Enemy *enemy = put_enemy(env, 0, X, Y + 1, 1);
    const int32_t tile = nmmo3_tile(env, X, Y + 1);
    enemy->body.hp = 1;
    act(NMMO3_ATTACK);
    EXPECT(nmmo3_codes(env, tile)[NMMO3_ANIMATION], NMMO3_DIES);
    act(NMMO3_STAY);
    EXPECT(enemy->is_gone, 1);
    EXPECT(nmmo3_codes(env, tile)[NMMO3_KIND], NMMO3_NOBODY);
    act(NMMO3_DOWN); /* onto its home, where the tool lies */
    EXPECT(nmmo3_type_of(env->players[0].bag[0]), NMMO3_TOOL);
    for (int32_t i = 0; i < 5; i++) act(NMMO3_STAY);
    EXPECT(enemy->is_gone, 1);
    act(NMMO3_UP);
    EXPECT(enemy->is_gone, 0);
    EXPECT(enemy->body.hp, 99);
}

/* ---- Items ------------------------------------------------------------------------------------------ */

/* Outcome of walking onto an item: the type in the bag (0: it stays), and the profession level. */
static void test_harvest(void) {
    enum { NONE = 0, TOOL = NMMO3_TOOL, SWORD = NMMO3_SWORD };
    static const struct {
        int32_t type, tier, held, held_tier, profession, taken, after;
    } cases[] = {
        {TOOL, 3, NONE, 1, 1, TOOL, 1},
        {NMMO3_HERB, 1, NONE, 1, 1, 0, 1},
        {NMMO3_HERB, 1, SWORD, 5, 1, 0, 1},
        {NMMO3_HERB, 1, TOOL, 1, 1, NMMO3_HERB, 2},
        {NMMO3_HERB, 2, TOOL, 1, 1, 0, 1},
        {NMMO3_HERB, 2, TOOL, 2, 1, NMMO3_HERB, 2},
        {NMMO3_HERB, 1, TOOL, 5, 7, NMMO3_HERB, 8},
        {NMMO3_HERB, 1, TOOL, 5, 8, NMMO3_HERB, 8},
        {NMMO3_HERB, 2, TOOL, 5, 8, NMMO3_HERB, 9},
        {NMMO3_HERB, 2, TOOL, 5, 16, NMMO3_HERB, 16},
        {NMMO3_HERB, 5, TOOL, 5, 39, NMMO3_HERB, 40},
        {NMMO3_HERB, 5, TOOL, 5, 40, NMMO3_HERB, 40},
        {NMMO3_HILT, 2, TOOL, 2, 1, SWORD, 2},
        {NMMO3_WOOD, 2, TOOL, 2, 1, NMMO3_BOW, 2},
        {NMMO3_GEM + 2, 4, TOOL, 4, 1, NMMO3_GEM + 2, 2},
    };
    chapter = "harvest";
    for (row = 0; row < (int32_t)(sizeof cases / sizeof *cases); row++) {
        Nmmo3 *env = new_meadow(1, 0);
        Nmmo3Player *player = &env->players[0];
        const int32_t item = nmmo3_item(cases[row].type, cases[row].tier);
        put_player(env, 0, X, Y);
        put_ground(env, X + 1, Y, item);
        if (cases[row].held)
            player->worn[NMMO3_HAND] = (uint8_t)nmmo3_item(cases[row].held, cases[row].held_tier);
        player->profession = (uint8_t)cases[row].profession;
        act(NMMO3_RIGHT);
        EXPECT(player->bag[0], cases[row].taken ? nmmo3_item(cases[row].taken, cases[row].tier) : 0);
        EXPECT(nmmo3_item_at(env, nmmo3_tile(env, X + 1, Y)), cases[row].taken ? 0 : item);
        EXPECT(player->profession, cases[row].after);
        EXPECT(rewards[0], cases[row].after - cases[row].profession);
    }
}

static void test_ore_becomes_each_kind_of_armour(void) {
    Nmmo3 *env = new_meadow(1, 0);
    int32_t made[NMMO3_TYPES] = {0};
    chapter = "ore";
    env->players[0].worn[NMMO3_HAND] = (uint8_t)nmmo3_item(NMMO3_TOOL, 1);
    put_player(env, 0, X, Y);
    for (row = 0; row < 60; row++) {
        put_ground(env, X + 1 - row % 2, Y, nmmo3_item(NMMO3_ORE, 1));
        act(row % 2 == 0 ? NMMO3_RIGHT : NMMO3_LEFT);
        made[nmmo3_type_of(env->players[0].bag[0])]++;
        env->players[0].bag[0] = 0;
        nmmo3_put_item(env, nmmo3_tile(env, X + row % 2, Y), 0);
    }
    EXPECT(made[NMMO3_HELM] > 5 && made[NMMO3_CHEST] > 5 && made[NMMO3_LEGS] > 5, 1);
    EXPECT(made[NMMO3_HELM] + made[NMMO3_CHEST] + made[NMMO3_LEGS], 60);
}

static void test_things_grow_again_and_tools_go(void) {
    Nmmo3 *env = new_meadow(1, 1);
    const int32_t herb = nmmo3_item(NMMO3_HERB, 1), tile = nmmo3_tile(env, X + 1, Y);
    chapter = "growth";
    env->players[0].worn[NMMO3_HAND] = (uint8_t)nmmo3_item(NMMO3_TOOL, 1);
    put_player(env, 0, X, Y);
    nmmo3_put_item(env, tile, herb);
    act(NMMO3_RIGHT);
    act(NMMO3_LEFT);
    for (row = 2; row < 100; row++) {
        EXPECT(nmmo3_item_at(env, tile), 0);
        act(NMMO3_STAY);
    }
    act(NMMO3_STAY);
    EXPECT(nmmo3_item_at(env, tile), herb);
    nmmo3_drop_tool(env, X, Y - 5, 2);
    nmmo3_drop_tool(env, X, Y - 5, 3); /* falls beside it */
    for (row = 0; row < 20; row++) {
        EXPECT(nmmo3_item_at(env, nmmo3_tile(env, X, Y - 5)), nmmo3_item(NMMO3_TOOL, 2));
        EXPECT(nmmo3_item_at(env, nmmo3_tile(env, X - 1, Y - 6)), nmmo3_item(NMMO3_TOOL, 3));
        act(NMMO3_STAY);
    }
    EXPECT(nmmo3_item_at(env, nmmo3_tile(env, X, Y - 5)), 0);
    EXPECT(env->totals.tools_gone, 2);
}

/* A tool that fell where another was taken has its own time. */
static void test_a_new_tool_outlives_the_old_one(void) {
    Nmmo3 *env = new_meadow(1, 1);
    const int32_t tile = nmmo3_tile(env, X, Y);
    chapter = "clocks";
    nmmo3_drop_tool(env, X, Y, 1);
    for (int32_t i = 0; i < 10; i++) act(NMMO3_STAY);
    nmmo3_put_item(env, tile, 0);
    nmmo3_drop_tool(env, X, Y, 2);
    for (row = 0; row < 20; row++) {
        EXPECT(nmmo3_item_at(env, tile), nmmo3_item(NMMO3_TOOL, 2));
        act(NMMO3_STAY);
    }
    EXPECT(nmmo3_item_at(env, tile), 0);
}

/* Effects of putting on and taking off. */
static void test_wearing(void) {
    static const struct {
        int32_t type, tier, place, attack, defence, element;
        float reward;
    } cases[] = {
        {NMMO3_HELM, 1, NMMO3_HEAD, 0, 8, 0, 0.1f},       {NMMO3_CHEST, 3, NMMO3_BODY, 0, 32, 0, 0.3f},
        {NMMO3_LEGS, 5, NMMO3_FEET, 0, 128, 0, 0.5f},     {NMMO3_SWORD, 1, NMMO3_HAND, 24, 0, 0, 0.1f},
        {NMMO3_SWORD, 5, NMMO3_HAND, 384, 0, 0, 0.5f},    {NMMO3_BOW, 1, NMMO3_HAND, 17, 0, 0, 0.1f},
        {NMMO3_BOW, 4, NMMO3_HAND, 136, 0, 0, 0.4f},      {NMMO3_TOOL, 4, NMMO3_HAND, 0, 0, 0, 0.25f},
        {NMMO3_GEM, 1, NMMO3_NECK, 0, 0, NMMO3_EARTH, 0}, {NMMO3_GEM + 3, 2, NMMO3_NECK, 0, 0, NMMO3_AQUA, 0},
    };
    chapter = "wearing";
    for (row = 0; row < (int32_t)(sizeof cases / sizeof *cases); row++) {
        Nmmo3 *env = new_meadow(1, 0);
        Nmmo3Player *player = &env->players[0];
        const uint8_t item = (uint8_t)nmmo3_item(cases[row].type, cases[row].tier);
        env->reward_tool = 0.25f;
        player->bag[11] = item;
        press(12);
        EXPECT(player->worn[cases[row].place], item);
        EXPECT(player->body.attack, cases[row].attack);
        EXPECT(player->body.defence, cases[row].defence);
        EXPECT(player->body.element, cases[row].element);
        EXPECT(rewards[0], cases[row].reward);
        player->bag[0] = item;
        press(1); /* nothing: its place is taken */
        EXPECT(rewards[0], 0);
        EXPECT(player->is_worn[0], 0);
        player->body.in_combat = 3;
        press(12); /* nothing: in combat */
        EXPECT(player->is_worn[11], 1);
        player->body.in_combat = 0;
        press(12);
        EXPECT(player->worn[cases[row].place] + player->is_worn[11], 0);
        EXPECT(player->body.attack + player->body.defence + player->body.element, 0);
        EXPECT(rewards[0], -cases[row].reward);
    }
}

static void test_herbs_heal(void) {
    static const int32_t cases[][3] = {{1, 20, 81}, {3, 1, 82}, {5, 20, 99}, {1, 39, 99}};
    chapter = "herbs";
    for (row = 0; row < 4; row++) {
        Nmmo3 *env = new_meadow(1, 0);
        env->players[0].bag[4] = (uint8_t)nmmo3_item(NMMO3_HERB, cases[row][0]);
        env->players[0].body.hp = (uint8_t)cases[row][1];
        env->players[0].body.in_combat = 5;
        press(5);
        EXPECT(env->players[0].body.hp, cases[row][2]);
        EXPECT(env->players[0].bag[4], 0);
    }
}

static void test_a_full_bag_takes_nothing(void) {
    Nmmo3 *env = new_meadow(1, 0);
    chapter = "full bag", row = 0;
    put_player(env, 0, X, Y);
    memset(env->players[0].bag, nmmo3_item(NMMO3_HERB, 1), NMMO3_SLOTS);
    put_ground(env, X, Y + 1, nmmo3_item(NMMO3_TOOL, 1));
    act(NMMO3_DOWN);
    EXPECT(env->players[0].body.y, Y + 1);
    EXPECT(nmmo3_item_at(env, nmmo3_tile(env, X, Y + 1)), nmmo3_item(NMMO3_TOOL, 1));
}

/* ---- Moving ----------------------------------------------------------------------------------------- */

/* Steps of an action, with water two tiles to the right and a player below. */
static void test_moving(void) {
    static const int32_t cases[][3] = {{NMMO3_RIGHT, 1, 0},
                                       {NMMO3_LEFT, -1, 0},
                                       {NMMO3_UP, 0, -1},
                                       {NMMO3_DOWN, 0, 0},
                                       {NMMO3_RUN + 2, 1, 0},
                                       {NMMO3_RUN + 3, -2, 0},
                                       {NMMO3_RUN + 1, 0, -2},
                                       {NMMO3_RUN, 0, 0},
                                       {6, 0, 0},
                                       {7, 0, 0},
                                       {26, 0, 0},
                                       {-1, 0, 0}};
    chapter = "moving";
    for (row = 0; row < (int32_t)(sizeof cases / sizeof *cases); row++) {
        Nmmo3 *env = new_meadow(2, 0);
        put_player(env, 0, X, Y);
        put_player(env, 1, X, Y + 1);
        nmmo3_codes(env, nmmo3_tile(env, X + 2, Y))[NMMO3_TERRAIN] = NMMO3_WATER;
        act(cases[row][0]);
        EXPECT(env->players[0].body.x, X + cases[row][1]);
        EXPECT(env->players[0].body.y, Y + cases[row][2]);
        const int32_t action = cases[row][0], facing = action >= NMMO3_RUN ? action - NMMO3_RUN : action;
        if (facing >= 0 && facing < 4) EXPECT(env->players[0].body.facing, facing);
        EXPECT(observations[(5 * 15 + 7) * 10 + NMMO3_KIND], NMMO3_PLAYER);
    }
}

/* ---- The market ------------------------------------------------------------------------------------- */

static void test_a_sale(void) {
    Nmmo3 *env = new_meadow(2, 0);
    Nmmo3Player *seller = &env->players[0], *buyer = &env->players[1];
    const uint8_t sword = (uint8_t)nmmo3_item(NMMO3_SWORD, 2);
    const Nmmo3Offers *shelf = nmmo3_offers_of(env, NMMO3_SWORD, 2);
    chapter = "sale", row = 0;
    seller->bag[2] = sword;
    buyer->gold = 7;
    const int32_t offering[] = {NMMO3_SELL, NMMO3_KEY_1 + 2, NMMO3_KEY_1 + 7 - 1};
    for (int32_t i = 0; i < 3; i++) act(offering[i]);
    EXPECT(shelf->count, 1);
    EXPECT(seller->bag[2], 0);
    EXPECT(seller->mode, NMMO3_PLAYING);
    const int32_t buying[] = {NMMO3_BUY, NMMO3_KEY_1 + 2 - 1, NMMO3_KEY_1 + NMMO3_SWORD - 1};
    for (int32_t i = 0; i < 3; i++) step((int32_t[]){NMMO3_STAY, buying[i]}, 2);
    EXPECT(shelf->count, 0);
    EXPECT(buyer->bag[0], sword);
    EXPECT(buyer->gold, 0);
    EXPECT(seller->gold, 7);
    EXPECT(rewards[0], 0.01f);
    EXPECT(rewards[1], 0.01f);
    EXPECT(observations[NMMO3_VIEW + NMMO3_SELF + NMMO3_SOLD], 1);
    EXPECT(observations[ROW + NMMO3_VIEW + NMMO3_SELF + NMMO3_BOUGHT], 1);
    act(NMMO3_STAY);
    EXPECT(observations[NMMO3_VIEW + NMMO3_SELF + NMMO3_SOLD], 0);
}

static void buy(Nmmo3 *env, int32_t gold) {
    env->players[0].gold = (uint8_t)gold;
    act(NMMO3_BUY);
    press(1);
    press(NMMO3_BOW);
}

/* Purchases that fail: too little gold, a full bag, in combat, or after another key. */
static void test_no_sale(void) {
    chapter = "no sale";
    for (row = 0; row < 5; row++) {
        Nmmo3 *env = new_meadow(2, 0);
        Nmmo3Player *player = &env->players[0];
        env->players[1].bag[0] = (uint8_t)nmmo3_item(NMMO3_BOW, 1);
        nmmo3_offer(env, 1, 0, 5);
        if (row == 1) memset(player->bag, nmmo3_item(NMMO3_HERB, 1), NMMO3_SLOTS);
        if (row == 2) player->body.in_combat = 5;
        if (row == 3) act(NMMO3_BUY), act(NMMO3_STAY), press(1), press(NMMO3_BOW);
        if (row != 3) buy(env, row == 0 ? 4 : 9);
        EXPECT(nmmo3_offers_of(env, NMMO3_BOW, 1)->count, row == 4 ? 0 : 1);
        EXPECT(env->players[1].gold, row == 4 ? 5 : 0);
    }
}

static void test_the_newest_offer_goes_first_and_a_shelf_has_an_end(void) {
    Nmmo3 *env = new_meadow(2, 0);
    const uint8_t bow = (uint8_t)nmmo3_item(NMMO3_BOW, 1);
    chapter = "shelf";
    for (row = 0; row < 40; row++) {
        env->players[1].bag[0] = bow;
        nmmo3_offer(env, 1, 0, 1 + row % 9);
        EXPECT(env->players[1].bag[0], row < 32 ? 0 : bow);
    }
    for (row = 31; row > 26; row--) {
        buy(env, 50);
        EXPECT(env->players[0].gold, 50 - (1 + row % 9));
    }
    env->players[0].bag[11] = bow;
    env->players[0].is_worn[11] = 1;
    nmmo3_offer(env, 0, 11, 1);
    EXPECT(env->players[0].bag[11], bow);
}

static void test_the_dead_are_not_paid(void) {
    Nmmo3 *env = new_meadow(2, 0);
    chapter = "heirs", row = 0;
    env->players[1].bag[0] = (uint8_t)nmmo3_item(NMMO3_BOW, 1);
    nmmo3_offer(env, 1, 0, 5);
    nmmo3_despawn_player(env, 1);
    nmmo3_spawn_player(env, 1);
    buy(env, 6);
    EXPECT(env->players[0].gold, 1);
    EXPECT(env->players[1].gold, 0);
    EXPECT(env->totals.gold_lost, 5);
}

/* ---- Lives ------------------------------------------------------------------------------------------ */

static void test_death(void) {
    Nmmo3 *env = new_meadow(2, 1);
    Nmmo3Player *player = &env->players[0];
    chapter = "death", row = 0;
    put_player(env, 0, X, Y);
    put_enemy(env, 0, X + 1, Y, 10);
    player->body.hp = 5;
    player->body.combat = 3, player->profession = 4, player->gold = 9;
    player->bag[3] = (uint8_t)nmmo3_item(NMMO3_TOOL, 1);
    act(NMMO3_STAY);
    EXPECT(rewards[0], -1);
    EXPECT(terminals[0], 1);
    EXPECT(truncations[0] + terminals[1] + truncations[1], 0);
    EXPECT(finals[NMMO3_VIEW + 1], 3);
    EXPECT(finals[NMMO3_VIEW + 5], 0);
    EXPECT(finals[NMMO3_VIEW + 7], 4);
    EXPECT(finals[NMMO3_VIEW + 11], 9);
    EXPECT(finals[NMMO3_VIEW + NMMO3_SELF + NMMO3_DIED], 1);
    EXPECT(observations[NMMO3_VIEW + 1], 1);
    EXPECT(observations[NMMO3_VIEW + 5], 99);
    EXPECT(observations[NMMO3_VIEW + NMMO3_SELF + NMMO3_DIED], 1);
    EXPECT(player->gold + player->bag[3] + player->body.in_combat, 0);
    EXPECT(env->occupants[nmmo3_tile(env, X, Y)], 0);
    EXPECT(env->totals.gold_lost, 9);
    EXPECT(env->totals.items_lost, 1);
    double metrics[PUFFER_MAX_METRICS], episode_return, episode_length;
    EXPECT(puffer_batch_report(&batch, metrics, &episode_return, &episode_length), 1);
    EXPECT(metrics[0], 3);
    EXPECT(metrics[1], 3 / 40.0f);
    EXPECT(episode_return, -1);
    EXPECT(episode_length, 1);
}

static void test_patience(void) {
    Nmmo3 *env = new_meadow(2, 0);
    chapter = "patience";
    for (row = 1; row < 500; row++) {
        act(NMMO3_STAY);
        if (row == 200) env->players[1].body.combat = env->players[1].profession = 2;
        EXPECT(truncations[0] + truncations[1], 0);
    }
    act(NMMO3_STAY);
    EXPECT(truncations[0], 1);
    EXPECT(terminals[0] + truncations[1], 0);
    EXPECT(rewards[0], 0);
    EXPECT(finals[NMMO3_VIEW + 42], 255);
    EXPECT(observations[NMMO3_VIEW + 42], 0);
    for (row = 501; row < 702; row++) {
        EXPECT(truncations[1], 0);
        act(NMMO3_STAY);
    }
    EXPECT(truncations[1], 1);
}

/* ---- Everything adds up -------------------------------------------------------------------------------- */

/* The map as the bodies and the land say it must be. */
static void check_map(const Nmmo3 *env) {
    int32_t standing = 0;
    for (int32_t y = 0; y < env->height; y++) {
        for (int32_t x = 0; x < env->width; x++) {
            const int32_t tile = nmmo3_tile(env, x, y), occupant = env->occupants[tile];
            const uint8_t *codes = nmmo3_codes(env, tile);
            const Nmmo3Body *body = occupant > 0 ? nmmo3_body(env, occupant) : NULL;
            for (int32_t kind = NMMO3_PLAYER; kind <= NMMO3_ENEMY; kind++) {
                EXPECT(nmmo3_bits(env, kind, x, y, 1), body != NULL && body->kind == kind);
            }
            static const uint8_t nobody[NMMO3_BODY_CODES];
            EXPECT(memcmp(codes + NMMO3_KIND, body ? body->shown : nobody, NMMO3_BODY_CODES), 0);
            if (body == NULL) continue;
            standing++;
            EXPECT(body->x, x);
            EXPECT(body->y, y);
            EXPECT(nmmo3_is_walkable(env, tile), 1);
            EXPECT(codes[NMMO3_KIND], body->kind);
            EXPECT(codes[NMMO3_LEVEL], body->combat);
            EXPECT(codes[NMMO3_HP], body->hp / 20);
            EXPECT(codes[NMMO3_ANIMATION], body->animation);
        }
    }
    int32_t there = env->num_players;
    for (int32_t i = 0; i < env->enemy_count; i++) there += !env->enemies[i].is_gone;
    EXPECT(standing, there);
}

/* Each view, from the map and the bodies, tile by tile. */
static void check_views(const Nmmo3 *env) {
    for (int32_t agent = 0; agent < env->num_players; agent++) {
        const Nmmo3Body *viewer = &env->players[agent].body;
        for (int32_t i = 0; i < NMMO3_ROWS * NMMO3_COLUMNS; i++) {
            const int32_t x = viewer->x + i % NMMO3_COLUMNS - 7, y = viewer->y + i / NMMO3_COLUMNS - 5;
            uint8_t expected[NMMO3_CODES];
            memcpy(expected, nmmo3_codes(env, nmmo3_tile(env, x, y)), NMMO3_CODES);
            const int32_t above = ((int32_t)expected[NMMO3_LEVEL] - viewer->combat) / 2;
            expected[NMMO3_LEVEL] = (uint8_t)(above < 0 ? 0 : above > 4 ? 4 : above);
            EXPECT(memcmp(observations + agent * ROW + i * NMMO3_CODES, expected, NMMO3_CODES), 0);
        }
    }
}

static void check_totals(const Nmmo3 *env, int32_t places) {
    const Nmmo3Totals *totals = &env->totals;
    int64_t gold = 0, items = 0, tools = 0, growing = 0;
    for (int32_t agent = 0; agent < env->num_players; agent++) {
        const Nmmo3Player *player = &env->players[agent];
        int32_t attack = 0, defence = 0, worn = 0;
        gold += player->gold;
        for (int32_t slot = 0; slot < NMMO3_SLOTS; slot++) {
            const int32_t item = player->bag[slot];
            items += item != 0;
            if (!player->is_worn[slot]) continue;
            EXPECT(player->worn[nmmo3_place_of(nmmo3_type_of(item))], item);
            attack += nmmo3_attack_of(item);
            defence += nmmo3_defence_of(item);
            worn++;
        }
        for (int32_t place = 0; place < NMMO3_PLACES; place++) worn -= player->worn[place] != 0;
        EXPECT(worn, 0);
        EXPECT(player->body.attack, attack);
        EXPECT(player->body.defence, defence);
    }
    for (int32_t i = 0; i < NMMO3_MAX_TIERS * NMMO3_BAG_TYPES; i++) items += env->market[i].count;
    for (int32_t tile = 0; tile < env->width * env->height; tile++) {
        const int32_t type = nmmo3_codes(env, tile)[NMMO3_ITEM_TYPE];
        tools += type == NMMO3_TOOL;
        growing += type != NMMO3_NONE && type != NMMO3_TOOL;
    }
    EXPECT(gold, totals->gold_won - totals->gold_lost);
    EXPECT(items, totals->items_taken - totals->items_used - totals->items_lost);
    EXPECT(tools, totals->tools_dropped - totals->tools_taken - totals->tools_gone);
    EXPECT(growing + env->growth.count, places);
}

/* At random, but often what leads to gold, tools, harvests and sales; some grow strong, or find tools. */
static int32_t choose(Nmmo3 *env, int32_t agent, PufferRng *rng) {
    Nmmo3Player *player = &env->players[agent];
    const int32_t chance = puffer_random_below(rng, 20);
    if (chance == 0) player->body.combat = (uint8_t)(20 + puffer_random_below(rng, 21));
    if (chance == 1) nmmo3_drop_tool(env, player->body.x, player->body.y, 1 + puffer_random_below(rng, 5));
    if (player->mode == NMMO3_BUY_TIER) return NMMO3_KEY_1;
    if (player->mode != NMMO3_PLAYING) return NMMO3_KEY_1 + puffer_random_below(rng, 6);
    switch (puffer_random_below(rng, 8)) {
        case 0:
        case 1:
            return NMMO3_ATTACK;
        case 2:
            return NMMO3_KEY_1 + puffer_random_below(rng, 4);
        case 3:
            return puffer_random_below(rng, 3) == 0 ? NMMO3_BUY : NMMO3_SELL;
    }
    return puffer_random_below(rng, NMMO3_ACTIONS + 2) - 1;
}

static void test_random_play_adds_up(int32_t steps) {
    Nmmo3 *env = new_world(8, 12, 3);
    PufferRng rng;
    int64_t trades = 0, ended = 0;
    int32_t chosen[8], places = 0;
    chapter = "adds up";
    puffer_seed(&rng, 5);
    for (int32_t tile = 0; tile < env->width * env->height; tile++) places += nmmo3_item_at(env, tile) != 0;
    for (row = 0; row < steps; row++) {
        for (int32_t agent = 0; agent < 8; agent++) chosen[agent] = choose(env, agent, &rng);
        step(chosen, 8);
        for (int32_t agent = 0; agent < 8; agent++) {
            trades += observations[agent * ROW + NMMO3_VIEW + NMMO3_SELF + NMMO3_BOUGHT];
            ended += terminals[agent] || truncations[agent];
        }
        if (row % 97 != 0) continue;
        check_map(env);
        check_views(env);
        check_totals(env, places);
    }
    EXPECT(trades * 1000 >= steps, 1);
    EXPECT(ended * 1000 >= steps, 1);
    EXPECT(env->totals.tools_taken * 1000 >= steps, 1);
    EXPECT((env->totals.items_taken - env->totals.tools_taken) * 1000 >= steps, 1);
    EXPECT(env->totals.items_used > 0 && env->totals.tools_gone > 0, 1);
}

/* ---- The land ---------------------------------------------------------------------------------------- */

/* Water around the map, at least a quarter of grass, and everything where it may grow. */
static void test_land(void) {
    chapter = "land";
    for (row = 0; row < 100; row++) {
        Nmmo3 *env = new_world(1, 0, (uint64_t)row);
        int32_t grass = 0, inner = 0;
        for (int32_t tile = 0; tile < env->width * env->height; tile++) {
            const int32_t x = tile % env->width, y = tile / env->width;
            const uint8_t *codes = nmmo3_codes(env, tile);
            EXPECT(codes[NMMO3_SEASON] < NMMO3_SEASONS, 1);
            if (!nmmo3_is_inside(env, x, y)) EXPECT(codes[NMMO3_TERRAIN], NMMO3_WATER);
            inner += nmmo3_is_inside(env, x, y);
            grass += codes[NMMO3_TERRAIN] == NMMO3_GRASS;
            if (codes[NMMO3_ITEM_TYPE] == NMMO3_NONE) continue;
            const int32_t type = codes[NMMO3_ITEM_TYPE], ground = nmmo3_ground(env, tile);
            EXPECT(codes[NMMO3_TERRAIN], NMMO3_GRASS);
            EXPECT(codes[NMMO3_ITEM_TIER] >= 1 && codes[NMMO3_ITEM_TIER] <= 5, 1);
            if (type == NMMO3_ORE || type == NMMO3_HILT) EXPECT(ground, NMMO3_BY_STONE);
            if (type == NMMO3_HERB || type == NMMO3_WOOD) EXPECT(ground, NMMO3_BY_WATER);
            if (type < NMMO3_HERB) EXPECT(ground - NMMO3_MEADOW, type - NMMO3_GEM);
        }
        EXPECT(grass * 4 >= inner, 1);
    }
}

/* Distribution: each tier is half as frequent as the one below, and half of the enemies are above level 8. */
static void test_rarity(void) {
    int32_t tiers[8] = {0}, levels[100] = {0}, high = 0, ranged = 0;
    chapter = "rarity", row = 0;
    for (int32_t seed = 0; seed < 60; seed++) {
        Nmmo3 *env = new_world(1, 90, (uint64_t)seed);
        for (int32_t tile = 0; tile < env->width * env->height; tile++)
            tiers[nmmo3_codes(env, tile)[NMMO3_ITEM_TIER]]++;
        for (int32_t i = 0; i < 90; i++) {
            const Nmmo3Enemy *enemy = &env->enemies[i];
            const int32_t season =
                nmmo3_codes(env, nmmo3_tile(env, enemy->home_x, enemy->home_y))[NMMO3_SEASON];
            levels[enemy->body.combat]++;
            high += enemy->body.combat > 8;
            ranged += enemy->is_ranged;
            EXPECT(enemy->is_ranged, enemy->body.combat >= 15);
            EXPECT(enemy->body.element, enemy->is_ranged ? season + 1 : 0);
        }
    }
    const double found = tiers[1] + tiers[2] + tiers[3] + tiers[4] + tiers[5];
    EXPECT(tiers[1] > 0.45 * found && tiers[1] < 0.55 * found, 1);
    EXPECT(tiers[2] > 0.21 * found && tiers[2] < 0.29 * found, 1);
    EXPECT(high > 0.40 * 5400 && high < 0.48 * 5400, 1);           /* 7/16 */
    EXPECT(levels[1] > 0.17 * 5400 && levels[1] < 0.23 * 5400, 1); /* 1/8 + 7/8 * 0.083 */
    EXPECT(levels[0], 0);
}

int main(int count, char **arguments) {
    test_damage();
    test_reach();
    test_wins();
    test_gold_has_a_limit();
    test_a_fight();
    test_aggro();
    test_enemies_stray_around_their_home();
    test_the_beaten_come_back();
    test_harvest();
    test_ore_becomes_each_kind_of_armour();
    test_things_grow_again_and_tools_go();
    test_a_new_tool_outlives_the_old_one();
    test_wearing();
    test_herbs_heal();
    test_a_full_bag_takes_nothing();
    test_moving();
    test_a_sale();
    test_no_sale();
    test_the_newest_offer_goes_first_and_a_shelf_has_an_end();
    test_the_dead_are_not_paid();
    test_death();
    test_patience();
    test_land();
    test_rarity();
    test_random_play_adds_up(count > 1 ? atoi(arguments[1]) : MANY);
    puffer_batch_destroy(&batch);
    return 0;
}
