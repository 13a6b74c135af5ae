/* Positions of snake, a step, and what must have become of them. Built with the sanitizers.
 *
 * A picture is the map row by row: A, B, C, ... are the cells of the first snake from its head, a, b, c, ...
 * those of the second, * is food, x a corpse and . an empty cell. What comes back on a random cell, eaten
 * food and a snake that died, comes to the last cell here: the random numbers are chosen so. */
#include <stdio.h>

#include "puffer_batch.h"
#include "snake/snake.c"

enum { ROWS = 4, COLUMNS = 6, CELLS = ROWS * COLUMNS, SNAKES = 2 };
enum { UP = SNAKE_UP, DOWN = SNAKE_DOWN, LEFT = SNAKE_LEFT, RIGHT = SNAKE_RIGHT };

static const float FOOD = 1, CORPSE = 2, DEATH = -4;

typedef struct {
    const char *about, *before, *after;
    int32_t actions[SNAKES];
    float rewards[SNAKES];
    int32_t max_length; /* 0: as usual */
    bool no_corpses;
} Case;

/* clang-format off */
static const Case cases[] = {
    {"a body follows its head",
     "......" ".CBA.." "......" "......",
     "......" "..CBA." "......" "......", {RIGHT}, {0}, 0, false},
    {"food makes it grow",
     "......" ".CBA*." "......" "......",
     "......" ".DCBA." "......" ".....*", {RIGHT}, {FOOD}, 0, false},
    {"so does a corpse",
     "......" ".CBA.." "...x.." "......",
     "......" ".DCB.." "...A.." "......", {DOWN}, {CORPSE}, 0, false},
    {"at its greatest length it eats and does not grow",
     "......" ".CBA*." "......" "......",
     "......" "..CBA." "......" ".....*", {RIGHT}, {FOOD}, 3, false},
    {"back into the neck is straight on",
     "......" ".CBA.." "......" "......",
     "......" "..CBA." "......" "......", {LEFT}, {0}, 0, false},
    {"so it is for two cells",
     "......" "..A..." "..B..." "......",
     "..A..." "..B..." "......" "......", {DOWN}, {0}, 0, false},
    {"one cell may turn back, and looks up at first",
     "......" "..A..." ".....a" "......",
     "......" ".....a" "..A..." "......", {DOWN, -1}, {0, 0}, 0, false},
    {"what is no action is straight on",
     "......" ".CBA.." "......" "...a..",
     "......" "..CBA." "...a.." "......", {4, -1}, {0, 0}, 0, false},
    {"the wall is death, every second cell a corpse",
     "......" ".....A" "..EDCB" "......",
     "......" ".....x" "..x.x." ".....A", {RIGHT}, {DEATH}, 0, false},
    {"or none",
     "......" ".....A" "..EDCB" "......",
     "......" "......" "......" ".....A", {RIGHT}, {DEATH}, 0, true},
    {"the own body is death",
     "......" "..CB.." ".EDA.." "......",
     "......" "..x..." ".x.x.." ".....A", {LEFT}, {DEATH}, 0, false},
    {"the own tail is a body, though it would have moved away",
     "......" "..CB.." "..DA.." "......",
     "......" "..x..." "...x.." ".....A", {LEFT}, {DEATH}, 0, false},
    {"another's body is death, and stays",
     "......" "cba..." ".A...." ".B....",
     "......" ".cba.." ".x...." ".....A", {UP, RIGHT}, {DEATH, 0}, 0, false},
    {"a cell that a tail has left is free for the second",
     "......" ".CBA.." ".a...." "......",
     "......" ".aCBA." "......" "......", {RIGHT, UP}, {0, 0}, 0, false},
    {"and not for the first",
     "......" ".cba.." ".A...." "......",
     "......" "..cba." ".x...." ".....A", {UP, RIGHT}, {DEATH, 0}, 0, false},
    {"of two heads that want the same cell the second dies",
     "......" ".BA.ab" "......" "......",
     "......" "..BAx." "......" ".....a", {RIGHT, LEFT}, {0, DEATH}, 0, false},
    {"of two heads that face each other the first dies, and the second eats it",
     "......" ".BAab." "......" "......",
     "......" "..abc." "......" ".....A", {RIGHT, LEFT}, {DEATH, CORPSE}, 0, false},
    {"the first is dead before the second moves, and is eaten",
     ".A...." ".B...." ".Cab.." "......",
     ".x...." "......" ".abc.." ".....A", {UP, LEFT}, {DEATH, CORPSE}, 0, false},
};
/* clang-format on */

static void fail(const Case *tried, const char *what) {
    fprintf(stderr, "%s: %s\n", tried->about, what);
    abort();
}

/* The place of cell `index` of a picture in the map. */
static int32_t place(const Snake *env, int32_t index) {
    return (env->vision + index / COLUMNS) * env->stride + env->vision + index % COLUMNS;
}

static void put_snake(Snake *env, int32_t number, const char *picture) {
    SnakeBody *body = &env->bodies[number];
    const char head = number == 0 ? 'A' : 'a';
    body->length = 0;
    for (int32_t k = 0;; k++, body->length++) {
        const char *found = strchr(picture, head + k);
        if (found == NULL) break;
        const int32_t cell = place(env, (int32_t)(found - picture));
        env->map[cell] = snake_part(number, k == 0 ? SNAKE_HEAD : SNAKE_BODY);
        *snake_cell(env, number, k) = cell;
    }
    body->head = *snake_cell(env, number, 0);
    if (body->length > 1) body->direction = body->head - *snake_cell(env, number, 1);
    body->age = 1;
}

static void put(Snake *env, const char *picture) {
    for (int32_t i = 0; i < CELLS; i++) {
        const int32_t thing = picture[i] == '*' ? SNAKE_FOOD : picture[i] == 'x' ? SNAKE_CORPSE : SNAKE_EMPTY;
        env->map[place(env, i)] = (uint16_t)thing;
    }
    for (int32_t number = 0; number < env->num_snakes; number++) put_snake(env, number, picture);
}

/* The letter of a cell: from the rings of the snakes, with which the map must agree. */
static char letter(const Snake *env, int32_t cell) {
    for (int32_t number = 0; number < env->num_snakes; number++) {
        for (int32_t k = 0; k < env->bodies[number].length; k++) {
            if (*snake_cell(env, number, k) != cell) continue;
            const bool agrees = env->map[cell] == snake_part(number, k == 0 ? SNAKE_HEAD : SNAKE_BODY);
            return !agrees ? '?' : (char)((number == 0 ? 'A' : 'a') + k);
        }
    }
    return env->map[cell] <= SNAKE_CORPSE ? ".*x"[env->map[cell]] : '?';
}

static void check(const Case *tried, const Snake *env) {
    for (int32_t i = 0; i < CELLS; i++) {
        const char seen = letter(env, place(env, i));
        if (seen == tried->after[i]) continue;
        fprintf(stderr, "row %d, column %d is %c\n", i / COLUMNS, i % COLUMNS, seen);
        fail(tried, "the picture differs");
    }
    for (int32_t number = 0; number < env->num_snakes; number++) {
        if (env->game.rewards[number] != tried->rewards[number]) fail(tried, "a reward differs");
        const bool died = tried->rewards[number] == DEATH;
        if (env->game.batch->terminals[number] != died) fail(tried, "a terminal differs");
    }
}

/* The next random cell is the last one. */
static PufferRng choose_numbers(void) {
    for (uint64_t seed = 0;; seed++) {
        PufferRng rng, next;
        puffer_seed(&rng, seed);
        next = rng;
        if (puffer_random_below(&next, ROWS) == ROWS - 1 &&
            puffer_random_below(&next, COLUMNS) == COLUMNS - 1) {
            return rng;
        }
    }
}

static double value_of(const Case *tried, const PufferParameter *parameter) {
    const struct {
        const char *name;
        double value;
    } values[] = {{"width", COLUMNS},
                  {"height", ROWS},
                  {"num_snakes", strchr(tried->before, 'a') ? 2 : 1},
                  {"num_food", 0},
                  {"max_snake_length", tried->max_length ? tried->max_length : 100},
                  {"leave_corpse_on_death", !tried->no_corpses},
                  {"reward_food", FOOD},
                  {"reward_corpse", CORPSE},
                  {"reward_death", DEATH}};
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        if (strcmp(values[i].name, parameter->name) == 0) return values[i].value;
    }
    return parameter->value;
}

const PufferEnvType *const puffer_env_types[] = {&snake_env, NULL};

static void try(const Case *tried) {
    static char observations[SNAKES * 31 * 31], last[SNAKES * 31 * 31];
    static float rewards[SNAKES];
    static bool flags[3][SNAKES];
    PufferValue values[32];
    PufferBatch batch;
    for (int32_t i = 0; i < snake_env.num_parameters; i++) {
        values[i].number = value_of(tried, &snake_env.parameters[i]);
    }
    if (puffer_batch_create(&batch, &snake_env, 1, values) != NULL) fail(tried, "it is refused");
    batch.observations = observations, batch.final_observations = last, batch.rewards = rewards;
    batch.terminals = flags[0], batch.truncations = flags[1], batch.masks = flags[2];
    int32_t actions[SNAKES] = {tried->actions[0], tried->actions[1]};
    batch.actions = (char *)actions;
    puffer_batch_bind(&batch);
    Snake *env = (Snake *)puffer_game(&batch, 0);
    batch.type->reset(&batch, 0, 1);
    put(env, tried->before);
    env->game.rng = choose_numbers();
    batch.type->step(&batch, 0, 1);
    check(tried, env);
    puffer_batch_destroy(&batch);
}

int main(void) {
    const size_t count = sizeof cases / sizeof *cases;
    for (size_t i = 0; i < count; i++) try(&cases[i]);
    printf("%d positions\n", (int)count);
}
