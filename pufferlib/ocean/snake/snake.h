/* Snake: many snakes on one map eat, grow and avoid each other.
 *
 * The map is `width` by `height` cells inside a wall. A snake starts with one cell. Snakes move one after the
 * other, in the order of their numbers, by one cell per step.
 *
 * Observation  int8[2 * vision + 1][2 * vision + 1], the cells around the head, row by row: 0 empty, 1 food,
 *              2 corpse, 3 wall, 4 own body, 5 another's body, 6 own head (in the middle), 7 another's head.
 * Actions      Discrete(4): 0 up, 1 down, 2 left, 3 right. Any other number goes straight on, and so does
 *              turning back into the own neck. A snake that has not moved yet faces up.
 * Rewards      reward_food and reward_corpse for eating, reward_death for dying, 0 otherwise.
 * Ends         of a snake, while the game continues forever: terminal when it dies, truncation when its life
 *              has lasted max_life steps. Each life is an episode. The next one starts in the same step, with
 *              one cell, on a random cell that is empty or has a corpse, which is removed.
 * Rules        A snake that eats food or a corpse grows by a cell, up to max_snake_length. Eaten food
 *              reappears on a random empty cell before the step is over, or later if there is no room. Moving
 *              into the wall or any body is fatal. A tail that is about to move away counts as a body. If two
 *              snakes want the same cell, the second one dies. When a snake dies, its first cell, its third,
 *              and so on become corpses, if leave_corpse_on_death is set. The same applies to truncated
 *              lives.
 * Memory       of a game: 4 * max_snake_length (rounded up to a power of two) + 24 bytes per snake, and 2
 *              bytes per cell, with a wall of `vision` cells around the map: 78 KB by default.
 * Source       PufferLib's Snake, with 256 snakes on 640 by 360 cells and 4096 pieces of food. There the own
 *              body cannot be distinguished from others, heads look like bodies, deaths are not terminals,
 *              and perf (length over lifetime) is perfect for a snake that dies immediately. */
#ifndef SNAKE_H
#define SNAKE_H

#include "puffer_env.h"

/* Contents of a cell, as observed. */
enum {
    SNAKE_EMPTY,
    SNAKE_FOOD,
    SNAKE_CORPSE,
    SNAKE_WALL,
    SNAKE_OWN_BODY,
    SNAKE_BODY,
    SNAKE_OWN_HEAD,
    SNAKE_HEAD
};
enum { SNAKE_UP, SNAKE_DOWN, SNAKE_LEFT, SNAKE_RIGHT, SNAKE_NUM_ACTIONS };

enum {
    SNAKE_OWNER_SHIFT = 3, /* a cell of the map: what others see, and above it 1 + the snake's number */
    SNAKE_SEEN = 7,        /* mask of what others see */
    SNAKE_MAX_SNAKES = 1024,
    SNAKE_MIN_VISION = 1,
    SNAKE_BLOCK = 8,  /* cells that are processed together */
    SNAKE_TRIES = 32, /* maximum number of random cells to try when looking for a free one */
};
_Static_assert((SNAKE_MAX_SNAKES + 1) << SNAKE_OWNER_SHIFT <= UINT16_MAX, "a snake's number must fit a cell");

typedef struct {
    int32_t head;      /* a cell of the map */
    int32_t direction; /* from one cell of the map to the next */
    int32_t newest;    /* position of the head in the ring */
    int32_t length, age;
    float total; /* rewards of this life */
} SnakeBody;

typedef struct {
    PufferGame game;
    /* parameters, lengths in cells */
    int32_t width, height, num_snakes, num_food, vision, max_snake_length, max_life;
    float reward_food, reward_corpse, reward_death;
    bool leave_corpse_on_death;
    /* metrics */
    float score, perf;
    /* state */
    int32_t food_due; /* eaten food that has not reappeared */
    int32_t stride;   /* cells in a row of the map, including the wall */
    int32_t ring_size;
    /* behind the struct */
    SnakeBody *bodies; /* [num_snakes] */
    int32_t *rings;    /* [num_snakes][ring_size]: the cells of each, up to the head */
    uint16_t *map;     /* [height + 2 * vision][stride], plus a block */
    int8_t *scratch;   /* an observation, plus a block */
} Snake;

static const char snake_about[] = "Many snakes on one map eat, grow and stay out of each other's way.";

/* clang-format off */
static const PufferParameter snake_parameters[] = {
    PUFFER_PARAMETER(Snake, width, 80, 4, 2048, "cells in a row of the map"),
    PUFFER_PARAMETER(Snake, height, 60, 4, 2048, "rows of the map"),
    PUFFER_PARAMETER(Snake, num_snakes, 16, 1, SNAKE_MAX_SNAKES, "snakes on a map, an agent each"),
    PUFFER_PARAMETER(Snake, num_food, 200, 0, 1000000, "pieces of food on a map"),
    PUFFER_PARAMETER(Snake, vision, 5, SNAKE_MIN_VISION, 10, "cells that a snake sees in each direction"),
    PUFFER_PARAMETER(Snake, max_snake_length, 1024, 2, 4096, "length at which a snake grows no more"),
    PUFFER_PARAMETER(Snake, max_life, 10000, 1, 100000000, "steps after which a life is cut off"),
    PUFFER_PARAMETER(Snake, leave_corpse_on_death, true, false, true, "half of a dead body can be eaten"),
    PUFFER_PARAMETER(Snake, reward_food, 0.1, -1000, 1000, "reward for eating food"),
    PUFFER_PARAMETER(Snake, reward_corpse, 0.1, -1000, 1000, "reward for eating a corpse"),
    PUFFER_PARAMETER(Snake, reward_death, -1, -1000, 1000, "reward for dying"),
};

static const size_t snake_pointers[] = {offsetof(Snake, bodies), offsetof(Snake, rings), offsetof(Snake, map), offsetof(Snake, scratch)};

static const PufferMetric snake_metrics[] = {
    PUFFER_METRIC(Snake, score, "length at the end of a life"),
    PUFFER_METRIC(Snake, perf, "the same as a share of max_snake_length"),
};
/* clang-format on */

/* ---- Memory and image size, which depend on the parameters --------------------------------------------- */

static inline int32_t snake_side(const Snake *env) {
    return 2 * env->vision + 1;
}

/* Offsets of the arrays behind the struct. */
typedef struct {
    size_t bodies, rings, map, scratch, end;
    int32_t stride, ring_size;
} SnakeLayout;

static inline SnakeLayout snake_layout(const Snake *env) {
    SnakeLayout layout = {.stride = env->width + 2 * env->vision, .ring_size = 1};
    while (layout.ring_size < env->max_snake_length) layout.ring_size *= 2;
    const size_t snakes = (size_t)env->num_snakes, side = (size_t)snake_side(env);
    const size_t cells = (size_t)layout.stride * (size_t)(env->height + 2 * env->vision);
    layout.bodies = sizeof(Snake);
    layout.rings = layout.bodies + snakes * sizeof(SnakeBody);
    layout.map = layout.rings + snakes * (size_t)layout.ring_size * sizeof(int32_t);
    layout.scratch = layout.map + (cells + SNAKE_BLOCK) * sizeof(uint16_t);
    layout.end = (layout.scratch + side * side + SNAKE_BLOCK + 63) / 64 * 64;
    return layout;
}

static inline size_t snake_bytes(const void *game) {
    return snake_layout(game).end;
}

/* The image is a map with its wall and a panel to its right. Cells are squares of cell_px, or a pixel
 * represents several cells. */
typedef struct {
    int32_t rows, columns; /* of the map, including one cell of wall on each side */
    int32_t cell_px, cells_per_px;
    int32_t width, height; /* px */
} SnakePicture;

enum {
    SNAKE_MAP_WIDTH_PX = 1280,
    SNAKE_MAP_HEIGHT_PX = 720,
    SNAKE_PANEL_PX = 260,
    SNAKE_PANEL_HEIGHT_PX = 520
};

static inline SnakePicture snake_picture(const Snake *env) {
    SnakePicture picture = {env->height + 2, env->width + 2, .cell_px = 24, .cells_per_px = 1};
    while (picture.cell_px > 1 && (picture.columns * picture.cell_px > SNAKE_MAP_WIDTH_PX ||
                                   picture.rows * picture.cell_px > SNAKE_MAP_HEIGHT_PX)) {
        picture.cell_px--;
    }
    while (picture.columns > SNAKE_MAP_WIDTH_PX * picture.cells_per_px ||
           picture.rows > SNAKE_MAP_HEIGHT_PX * picture.cells_per_px) {
        picture.cells_per_px++;
    }
    picture.width = picture.columns * picture.cell_px / picture.cells_per_px;
    picture.height = picture.rows * picture.cell_px / picture.cells_per_px;
    return picture;
}

static inline const char *snake_spec(const Snake *env, PufferSpec *spec) {
    if (env->num_snakes + env->num_food > env->width * env->height / 2) {
        return "num_snakes plus num_food must be at most half of width times height";
    }
    const SnakePicture picture = snake_picture(env);
    *spec = (PufferSpec){
        .observation_type = PUFFER_INT8,
        .observation_shape = {snake_side(env), snake_side(env)},
        .observation_low = SNAKE_EMPTY,
        .observation_high = SNAKE_HEAD,
        .action_kind = PUFFER_DISCRETE,
        .action_sizes = {SNAKE_NUM_ACTIONS},
        .agents = env->num_snakes,
        .agents_end = true,
        .picture_width = picture.width + SNAKE_PANEL_PX,
        .picture_height = picture.height > SNAKE_PANEL_HEIGHT_PX ? picture.height : SNAKE_PANEL_HEIGHT_PX,
        .frames_per_second = 10,
    };
    return NULL;
}

/* ---- Cells ------------------------------------------------------------------------------------------------
 */

/* Value of the map at the SNAKE_BODY or SNAKE_HEAD of snake `number`. */
static inline uint16_t snake_part(int32_t number, int32_t part) {
    return (uint16_t)((number + 1) << SNAKE_OWNER_SHIFT | part);
}

/* The k-th cell of a snake, counted from its head. */
static inline int32_t *snake_cell(const Snake *env, int32_t number, int32_t k) {
    const int32_t place = (env->bodies[number].newest - k) & (env->ring_size - 1);
    return &env->rings[(size_t)number * (size_t)env->ring_size + (size_t)place];
}

/* Returns a random cell that is empty or contains `other`, or -1 if none was found. */
static inline int32_t snake_find_cell(Snake *env, int32_t other) {
    for (int32_t i = 0; i < SNAKE_TRIES; i++) {
        const int32_t row = env->vision + puffer_random_below(&env->game.rng, env->height);
        const int32_t column = env->vision + puffer_random_below(&env->game.rng, env->width);
        const int32_t cell = row * env->stride + column;
        if (env->map[cell] == SNAKE_EMPTY || env->map[cell] == other) return cell;
    }
    return -1;
}

/* Places the food that is due, as far as there is room. */
static inline void snake_place_food(Snake *env) {
    while (env->food_due > 0) {
        const int32_t cell = snake_find_cell(env, SNAKE_EMPTY);
        if (cell < 0) return;
        env->map[cell] = SNAKE_FOOD;
        env->food_due--;
    }
}

/* ---- Observing --------------------------------------------------------------------------------------------
 */

/* Cells that are processed together, with a few instructions on any CPU that has 128-bit vectors. */
typedef uint16_t SnakeCells __attribute__((vector_size(SNAKE_BLOCK * sizeof(uint16_t))));
typedef int8_t SnakeSeen __attribute__((vector_size(SNAKE_BLOCK)));

/* Copies the view of a snake, and up to SNAKE_BLOCK - 1 further bytes. */
static inline void snake_copy_view(const Snake *env, int32_t number, int8_t *seen) {
    const int32_t side = snake_side(env);
    const uint16_t own = (uint16_t)(number + 1);
    const uint16_t *row = env->map + env->bodies[number].head - env->vision * (env->stride + 1);
    for (int32_t i = 0; i < side; i++, row += env->stride, seen += side) {
        for (int32_t column = 0; column < side; column += SNAKE_BLOCK) {
            SnakeCells cells;
            memcpy(&cells, row + column, sizeof cells);
            const SnakeCells is_own = (SnakeCells)(cells >> SNAKE_OWNER_SHIFT == own); /* -1 if it is own */
            const SnakeSeen block = __builtin_convertvector((cells & SNAKE_SEEN) + is_own, SnakeSeen);
            memcpy(seen + column, &block, sizeof block);
        }
    }
}

/* Writes the observation of one snake, and nothing after it. */
static inline void snake_observe_one(Snake *env, int32_t number) {
    const size_t size = (size_t)(snake_side(env) * snake_side(env));
    snake_copy_view(env, number, env->scratch);
    memcpy((int8_t *)env->game.observations + (size_t)number * size, env->scratch, size);
}

/* Writes all observations. Each overwrites the extra bytes of the previous one, since it is at least a block
 * long. */
static inline void snake_observe(Snake *env) {
    _Static_assert((2 * SNAKE_MIN_VISION + 1) * (2 * SNAKE_MIN_VISION + 1) >= SNAKE_BLOCK, "a short row");
    const size_t size = (size_t)(snake_side(env) * snake_side(env));
    int8_t *seen = env->game.observations;
    for (int32_t i = 0; i < env->num_snakes - 1; i++, seen += size) snake_copy_view(env, i, seen);
    snake_observe_one(env, env->num_snakes - 1);
}

/* ---- Lives ------------------------------------------------------------------------------------------------
 */

static inline void snake_spawn(Snake *env, int32_t number, int32_t cell) {
    SnakeBody *body = &env->bodies[number];
    *body = (SnakeBody){.head = cell, .direction = -env->stride, .length = 1};
    *snake_cell(env, number, 0) = cell;
    env->map[cell] = snake_part(number, SNAKE_HEAD);
}

/* Counts a life, leaves its corpses and starts the next one. */
static inline void snake_end_life(Snake *env, int32_t number, PufferOutcome outcome) {
    const SnakeBody *body = &env->bodies[number];
    const int32_t corpse = env->leave_corpse_on_death ? SNAKE_CORPSE : SNAKE_EMPTY;
    env->score = (float)body->length;
    env->perf = (float)body->length / (float)env->max_snake_length;
    PUFFER_END_AGENT(env, snake_metrics, number, outcome, body->total, body->age);
    for (int32_t k = 0; k < body->length; k++) {
        env->map[*snake_cell(env, number, k)] = (uint16_t)(k % 2 == 0 ? corpse : SNAKE_EMPTY);
    }
    const int32_t cell = snake_find_cell(env, SNAKE_CORPSE);
    snake_spawn(env, number, cell >= 0 ? cell : body->head);
}

static inline void snake_reset(Snake *env) {
    const SnakeLayout layout = snake_layout(env);
    env->stride = layout.stride;
    env->ring_size = layout.ring_size;
    env->bodies = (SnakeBody *)((char *)env + layout.bodies);
    env->rings = (int32_t *)((char *)env + layout.rings);
    env->map = (uint16_t *)((char *)env + layout.map);
    env->scratch = (int8_t *)env + layout.scratch;
    for (int32_t row = 0; row < env->height + 2 * env->vision; row++) {
        const bool inside = row >= env->vision && row < env->vision + env->height;
        uint16_t *cells = env->map + row * env->stride;
        for (int32_t column = 0; column < env->stride; column++) cells[column] = SNAKE_WALL;
        if (inside) memset(cells + env->vision, SNAKE_EMPTY, (size_t)env->width * sizeof *cells);
    }
    for (int32_t i = 0; i < env->num_snakes; i++) {
        int32_t cell;
        do cell = snake_find_cell(env, SNAKE_EMPTY); /* at least half of the map is empty */
        while (cell < 0);
        snake_spawn(env, i, cell);
    }
    env->food_due = env->num_food;
    snake_place_food(env);
    snake_observe(env);
}

/* ---- A step -----------------------------------------------------------------------------------------------
 */

static inline void snake_reward(Snake *env, int32_t number, float reward) {
    env->game.rewards[number] = reward;
    env->bodies[number].total += reward;
}

/* Moves onto `cell`, which is empty or can be eaten. */
static inline void snake_advance(Snake *env, int32_t number, int32_t cell, int32_t found) {
    SnakeBody *body = &env->bodies[number];
    const int32_t tail = *snake_cell(env, number, body->length - 1);
    const bool grows = found != SNAKE_EMPTY && body->length < env->max_snake_length;
    env->map[body->head] = snake_part(number, SNAKE_BODY);
    if (!grows) env->map[tail] = SNAKE_EMPTY;
    env->map[cell] = snake_part(number, SNAKE_HEAD);
    body->head = cell;
    body->length += grows;
    body->newest++;
    *snake_cell(env, number, 0) = cell;
    if (found == SNAKE_EMPTY) return;
    env->food_due += found == SNAKE_FOOD;
    snake_reward(env, number, found == SNAKE_FOOD ? env->reward_food : env->reward_corpse);
}

static inline void snake_move(Snake *env, int32_t number, uint32_t action) {
    const int32_t moves[SNAKE_NUM_ACTIONS] = {-env->stride, env->stride, -1, 1};
    SnakeBody *body = &env->bodies[number];
    int32_t move = action < SNAKE_NUM_ACTIONS ? moves[action] : body->direction;
    if (move == -body->direction && body->length > 1) move = body->direction;
    const int32_t cell = body->head + move, found = env->map[cell];
    body->direction = move;
    body->age++;
    if (found <= SNAKE_CORPSE) {
        snake_advance(env, number, cell, found);
    } else {
        snake_reward(env, number, env->reward_death);
        snake_end_life(env, number, PUFFER_TERMINATED);
    }
}

/* Truncates lives that are too long, each with its last observation. */
static inline void snake_truncate(Snake *env) {
    for (int32_t i = 0; i < env->num_snakes; i++) {
        if (env->bodies[i].age < env->max_life) continue;
        snake_observe_one(env, i);
        snake_end_life(env, i, PUFFER_TRUNCATED);
    }
}

static inline PufferOutcome snake_step(Snake *env) {
    const uint32_t *actions = env->game.actions; /* negative numbers become large */
    for (int32_t i = 0; i < env->num_snakes; i++) snake_move(env, i, actions[i]);
    snake_place_food(env);
    snake_truncate(env);
    snake_observe(env);
    return PUFFER_RUNNING;
}

#endif
