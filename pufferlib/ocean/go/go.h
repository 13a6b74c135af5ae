/* Go: play black against a scripted white, or black and white against each other.
 *
 * Observation  float[3 n + 5] for the n = grid_size * grid_size points of the board, row by row from the top:
 *              - [0, n] is 1 for every legal action
 *              - for each point, 1 if there is a stone of the agent
 *              - for each point, 1 if there is a stone of the opponent
 *              - stones captured by the agent and by the opponent, over n
 *              - 1 if the opponent has just passed
 *              - fraction of the agent's steps that has passed. With two players it is of both together, and
 *                white sees 1 more, so that it knows its colour
 * Actions      Discrete(n + 1): 0 pass, 1 to n play at that point. An illegal action (an occupied point,
 *              suicide, ko, any other number) does nothing, and the opponent does not move. With two players,
 *              the player who is not to move can only wait: 0 is legal, and any number does nothing.
 * Rewards      reward_result for a won game, minus that for a lost one, 0 for a tie. In addition, in every
 *              step, reward_move_pass, reward_move_valid or reward_move_invalid depending on the action, and
 *              reward_player_capture and reward_opponent_capture for each captured stone.
 * Ends         terminal after two passes in a row, of either side, and after the agent's moves_per_point *
 *              n-th action, which the observation announces.
 * Players      1: an agent for black against the opponent. 2: an agent for each colour, for self-play. Both
 *              are present in every step, each sees its own stones first, and one of them waits.
 * Rules        Chains without liberties are captured. Suicide is illegal. Simple ko: no move may repeat the
 *              position before the opponent's last move. Tromp-Taylor area scoring: stones and empty points
 *              that reach only one colour, minus komi for black. No dead stones are removed.
 * Opponent     0 plays at random. 1 captures chains in atari, else extends an own chain in atari, else plays
 *              at random. 2 does the same, but before it plays at random it takes a liberty of a chain with
 *              two, else three, else four liberties. Among equal moves it chooses at random. Random moves
 *              never fill an eye. It passes if no other move is left, and answers a pass with a pass if it is
 *              ahead.
 * Source       the Tromp-Taylor rules (tromp.github.io/go.html), with simple ko instead of superko and
 *              without suicide. Numbers and opponent are from PufferLib's Go. There a pass never ends a
 *              game, the game ends when white has no move, the terminal flag is lost, and ko and legal moves
 *              are not observed.
 *
 * A game takes 1.4 KB up to 7 x 7, 3.6 KB up to 10 x 10, 22.5 KB on 19 x 19. */
#ifndef GO_H
#define GO_H

#include "board.h"

enum { GO_PASS = 0 };
enum { GO_RANDOM, GO_EASY, GO_GREEDY };
enum { GO_WIDTH = 640, GO_PANEL = 80 }; /* width of the image, and height of the panel above the board, px */

typedef struct {
    PufferGame game;
    /* parameters */
    int32_t grid_size, opponent, players, moves_per_point;
    float komi;
    float reward_result, reward_move_pass, reward_move_valid, reward_move_invalid;
    float reward_player_capture, reward_opponent_capture;
    /* metrics */
    float score, perf;
    /* state; behind the struct are the board and three sets, the current planes of the observation */
    int32_t words, limit;
    uint32_t divisor;    /* point * divisor >> 16 is the row */
    int32_t mover;       /* colour to move: always black with one agent */
    int32_t ko;          /* where the side to move may not play, or GO_NOWHERE */
    int32_t last[2];     /* last move of each side, or GO_NOWHERE, for rendering */
    int32_t passes;      /* in a row */
    int32_t captured[2]; /* by each side */
} Go;

static const char go_about[] = "Surround more than a scripted white player, on a board of 5 x 5 to 19 x 19.";

/* clang-format off */
static const PufferParameter go_parameters[] = {
    PUFFER_PARAMETER(Go, grid_size, 7, GO_MIN_SIZE, GO_MAX_SIZE, "points on a side of the board"),
    PUFFER_PARAMETER(Go, opponent, GO_GREEDY, GO_RANDOM, GO_GREEDY, "0 random, 1 easy, 2 greedy"),
    PUFFER_PARAMETER(Go, players, 1, 1, 2, "agents of a game: 1 plays black against the opponent, 2 against each other"),
    PUFFER_PARAMETER(Go, moves_per_point, 3, 1, 100, "actions of an agent for each point until the game ends"),
    PUFFER_PARAMETER(Go, komi, 7.5, -400, 400, "points that white gets for moving second"),
    PUFFER_PARAMETER(Go, reward_result, 1, 0, 100, "reward for a won game, minus that for a lost one"),
    PUFFER_PARAMETER(Go, reward_move_pass, 0, -100, 100, "reward for a pass"),
    PUFFER_PARAMETER(Go, reward_move_valid, 0, -100, 100, "reward for a legal move"),
    PUFFER_PARAMETER(Go, reward_move_invalid, -0.1, -100, 100, "reward for an action that is not legal"),
    PUFFER_PARAMETER(Go, reward_player_capture, 0, -100, 100, "reward for each stone that the agent captures"),
    PUFFER_PARAMETER(Go, reward_opponent_capture, 0, -100, 100, "reward for each stone that the agent loses"),
};

static const PufferMetric go_metrics[] = {
    PUFFER_METRIC(Go, score, "area of black minus area of white minus komi"),
    PUFFER_METRIC(Go, perf, "1 for a game that black won, 0.5 for a tie"),
};
/* clang-format on */

static inline int32_t go_num_points(const Go *env) {
    return env->grid_size * env->grid_size;
}

static inline size_t go_bytes(const void *game) {
    const int32_t words = go_words(((const Go *)game)->grid_size);
    return sizeof(Go) + (go_board_words(words) + 3 * (size_t)words) * sizeof(uint64_t);
}

static inline const char *go_spec(const Go *env, PufferSpec *spec) {
    const int32_t points = go_num_points(env);
    *spec = (PufferSpec){
        .observation_type = PUFFER_FLOAT32,
        .observation_shape = {3 * points + 5},
        .observation_low = 0,
        .observation_high = 100, /* captures over points: at most moves_per_point */
        .action_kind = PUFFER_DISCRETE,
        .action_sizes = {points + 1},
        .action_mask = {.offset = 0, .size = points + 1},
        .agents = env->players,
        .picture_width = GO_WIDTH,
        .picture_height = GO_PANEL + GO_WIDTH,
        .frames_per_second = 2,
    };
    return NULL;
}

PUFFER_INLINE GoBoard go_board_of(const Go *env, const int32_t words) {
    return go_board((uint64_t *)(env + 1), env->grid_size, words);
}

/* The current planes of the observation: legal moves, black's stones, white's. */
PUFFER_INLINE uint64_t *go_shown(const Go *env) {
    return (uint64_t *)(env + 1) + go_board_words(env->words);
}

/* Points by which black leads on the current board. */
PUFFER_INLINE float go_lead(const Go *env, const GoBoard *board) {
    uint64_t area[2][GO_MAX_WORDS];
    go_area(board, area);
    const int32_t black = go_count(area[GO_BLACK], board->words);
    const int32_t white = go_count(area[GO_WHITE], board->words);
    return (float)(black - white) - env->komi;
}

/* ---- Observation -------------------------------------------------------------------------------- */

/* Updates a plane of the observation from the set `shown` to the set `now`. */
PUFFER_INLINE void go_update_plane(const Go *env, float *plane, uint64_t *shown, const uint64_t *now,
                                   const int32_t words) {
    for (int32_t w = 0; w < words; w++) {
        for (uint64_t rest = shown[w] ^ now[w]; rest != 0; rest &= rest - 1) {
            const int32_t bit = __builtin_ctzll(rest), point = 64 * w + bit;
            const int32_t row = (int32_t)((uint32_t)point * env->divisor >> 16);
            plane[point - row] = (float)(now[w] >> bit & 1);
        }
        shown[w] = now[w];
    }
}

PUFFER_INLINE void go_observe_time(Go *env) {
    float *end = (float *)env->game.observations + 3 * go_num_points(env) + 5;
    end[-1] = (float)env->game.episode_length / (float)env->limit;
}

/* Writes the observation. `liberties` belong to the current board. */
PUFFER_INLINE void go_observe(Go *env, const GoBoard *board, const GoLiberties *liberties) {
    const int32_t points = go_num_points(env), words = board->words;
    uint64_t *shown = go_shown(env);
    float *plane = (float *)env->game.observations + 1;
    uint64_t legal[GO_MAX_WORDS];
    go_legal(board, liberties, GO_BLACK, env->ko, legal);
    go_update_plane(env, plane, shown, legal, words);
    go_update_plane(env, plane + points, shown + words, board->stones[GO_BLACK], words);
    go_update_plane(env, plane + 2 * points, shown + 2 * words, board->stones[GO_WHITE], words);
    float *numbers = plane + 3 * points;
    numbers[0] = (float)env->captured[GO_BLACK] / (float)points;
    numbers[1] = (float)env->captured[GO_WHITE] / (float)points;
    numbers[2] = (float)(env->passes > 0);
    go_observe_time(env);
}

/* Writes the points of a set into a plane of zeros. */
static inline void go_write_plane(const Go *env, float *plane, const uint64_t *set) {
    for (int32_t w = 0; w < env->words; w++) {
        for (uint64_t rest = set[w]; rest != 0; rest &= rest - 1) {
            const int32_t point = 64 * w + __builtin_ctzll(rest);
            plane[point - (int32_t)((uint32_t)point * env->divisor >> 16)] = 1;
        }
    }
}

static inline void go_observe_time_of_two(Go *env) {
    const int32_t size = 3 * go_num_points(env) + 5;
    const float share = (float)env->game.episode_length / (float)(2 * env->limit);
    float *observation = env->game.observations;
    observation[size - 1] = share;
    observation[2 * size - 1] = 1 + share;
}

/* Writes both rows completely. Only the player to move sees its legal moves. */
static inline void go_observe_of_two(Go *env, const GoBoard *board, const GoLiberties *liberties) {
    const int32_t points = go_num_points(env);
    float *row = env->game.observations;
    go_legal(board, liberties, env->mover, env->ko, go_shown(env));
    memset(row, 0, 2 * (size_t)(3 * points + 5) * sizeof(float));
    for (int32_t colour = 0; colour < 2; colour++, row += 3 * points + 5) {
        float *plane = row + 1, *numbers = plane + 3 * points;
        row[GO_PASS] = 1;
        if (colour == env->mover) go_write_plane(env, plane, go_shown(env));
        go_write_plane(env, plane + points, board->stones[colour]);
        go_write_plane(env, plane + 2 * points, board->stones[!colour]);
        numbers[0] = (float)env->captured[colour] / (float)points;
        numbers[1] = (float)env->captured[!colour] / (float)points;
        numbers[2] = (float)(colour == env->mover && env->passes > 0);
    }
    go_observe_time_of_two(env);
}

static inline void go_reset(Go *env) {
    const int32_t words = go_words(env->grid_size);
    const GoBoard board = go_board_of(env, words);
    float *observation = env->game.observations;
    GoLiberties liberties;
    env->words = words;
    env->limit = env->moves_per_point * go_num_points(env);
    env->divisor = 65536u / (uint32_t)board.stride + 1;
    env->mover = GO_BLACK;
    env->ko = env->last[GO_BLACK] = env->last[GO_WHITE] = GO_NOWHERE;
    env->passes = env->captured[0] = env->captured[1] = 0;
    go_clear(&board);
    memset(go_shown(env), 0, 3 * (size_t)words * sizeof(uint64_t));
    memset(observation, 0, (size_t)(3 * go_num_points(env) + 5) * sizeof(float));
    observation[GO_PASS] = 1;
    go_count_liberties(&board, &liberties);
    go_observe(env, &board, &liberties);
    if (env->players == 2) go_observe_of_two(env, &board, &liberties);
}

/* ---- The opponent ------------------------------------------------------------------------------- */

/* Returns a random point of a set, or GO_NOWHERE if it is empty. */
PUFFER_INLINE int32_t go_pick(Go *env, const uint64_t *set, const int32_t words) {
    const int32_t count = go_count(set, words);
    if (count == 0) return GO_NOWHERE;
    int32_t skip = puffer_random_below(&env->game.rng, count), w = 0;
    for (int32_t here; skip >= (here = __builtin_popcountll(set[w])); w++) skip -= here;
    uint64_t rest = set[w];
    while (skip-- > 0) rest &= rest - 1;
    return 64 * w + __builtin_ctzll(rest);
}

/* Returns white's move, or GO_NOWHERE for a pass. */
PUFFER_INLINE int32_t go_choose_reply(Go *env, const GoBoard *board, const GoLiberties *liberties) {
    const int32_t words = board->words;
    const uint64_t *const preferences[] = {liberties->by_count[GO_BLACK][0], liberties->by_count[GO_WHITE][0],
                                           liberties->by_count[GO_BLACK][1], liberties->by_count[GO_BLACK][2],
                                           liberties->by_count[GO_BLACK][3]};
    static const int32_t num_preferences[] = {[GO_RANDOM] = 0, [GO_EASY] = 2, [GO_GREEDY] = 5};
    uint64_t legal[GO_MAX_WORDS], wanted[GO_MAX_WORDS];
    go_legal(board, liberties, GO_WHITE, env->ko, legal);
    for (int32_t i = 0; i < num_preferences[env->opponent]; i++) {
        uint64_t any = 0;
        for (int32_t w = 0; w < words; w++) any |= wanted[w] = preferences[i][w] & legal[w];
        if (any != 0) return go_pick(env, wanted, words);
    }
    go_eyes(board, GO_WHITE, wanted);
    for (int32_t w = 0; w < words; w++) wanted[w] = legal[w] & ~wanted[w];
    return go_pick(env, wanted, words);
}

/* White's answer to a legal move or a pass. */
PUFFER_INLINE void go_reply(Go *env, const GoBoard *board, const GoLiberties *liberties) {
    const bool may_stop = env->passes > 0 && go_lead(env, board) < 0;
    const int32_t point = may_stop ? GO_NOWHERE : go_choose_reply(env, board, liberties);
    env->last[GO_WHITE] = point;
    env->ko = GO_NOWHERE;
    if (point == GO_NOWHERE) {
        env->passes++;
        return;
    }
    const int32_t captured = go_place(board, GO_WHITE, point);
    env->ko = go_ko(board, point, captured);
    env->captured[GO_WHITE] += captured;
    env->game.rewards[0] += env->reward_opponent_capture * (float)captured;
    env->passes = 0;
}

/* ---- A step ------------------------------------------------------------------------------------- */

/* Returns the point of a legal move, or GO_NOWHERE for any other action. */
PUFFER_INLINE int32_t go_point(const Go *env, int32_t action) {
    if (action <= GO_PASS || action > go_num_points(env)) return GO_NOWHERE;
    const int32_t point = action - 1 + (action - 1) / env->grid_size;
    return go_has(go_shown(env), point) ? point : GO_NOWHERE;
}

/* Applies a pass or a legal move of an agent. */
PUFFER_INLINE void go_play(Go *env, const GoBoard *board, const int32_t colour, int32_t point) {
    float *reward = &env->game.rewards[colour];
    env->last[colour] = point;
    env->ko = GO_NOWHERE;
    if (point == GO_NOWHERE) {
        env->passes++;
        *reward += env->reward_move_pass;
        return;
    }
    const int32_t captured = go_place(board, colour, point);
    env->ko = go_ko(board, point, captured);
    env->captured[colour] += captured;
    *reward += env->reward_move_valid + env->reward_player_capture * (float)captured;
    env->passes = 0;
}

PUFFER_INLINE PufferOutcome go_end(Go *env, const GoBoard *board) {
    env->score = go_lead(env, board);
    env->perf = env->score > 0 ? 1 : env->score == 0 ? 0.5f : 0;
    env->game.rewards[0] += env->reward_result * (float)((env->score > 0) - (env->score < 0));
    return PUFFER_TERMINATED;
}

PUFFER_INLINE PufferOutcome go_play_turn(Go *env, const int32_t words) {
    const GoBoard board = go_board_of(env, words);
    const int32_t action = *(const int32_t *)env->game.actions, point = go_point(env, action);
    GoLiberties liberties;
    if (action != GO_PASS && point == GO_NOWHERE) {
        env->game.rewards[0] += env->reward_move_invalid;
        go_observe_time(env);
    } else {
        go_play(env, &board, GO_BLACK, point);
        go_count_liberties(&board, &liberties);
        if (env->passes < 2) {
            go_reply(env, &board, &liberties);
            go_count_liberties(&board, &liberties);
        }
        go_observe(env, &board, &liberties);
    }
    if (env->passes < 2 && env->game.episode_length < env->limit) return PUFFER_RUNNING;
    return go_end(env, &board);
}

static inline PufferOutcome go_play_turn_of_two(Go *env) {
    const GoBoard board = go_board_of(env, env->words);
    const int32_t colour = env->mover, action = ((const int32_t *)env->game.actions)[colour];
    const int32_t point = go_point(env, action), captured = env->captured[colour];
    if (action != GO_PASS && point == GO_NOWHERE) {
        env->game.rewards[colour] += env->reward_move_invalid;
        go_observe_time_of_two(env);
    } else {
        GoLiberties liberties;
        go_play(env, &board, colour, point);
        env->game.rewards[!colour] +=
            env->reward_opponent_capture * (float)(env->captured[colour] - captured);
        env->mover = !colour;
        go_count_liberties(&board, &liberties);
        go_observe_of_two(env, &board, &liberties);
    }
    if (env->passes < 2 && env->game.episode_length < 2 * env->limit) return PUFFER_RUNNING;
    go_end(env, &board);
    env->game.rewards[1] -= env->reward_result * (float)((env->score > 0) - (env->score < 0));
    return PUFFER_TERMINATED;
}

/* Boards of one word, up to 7 x 7, have specialized code. */
static inline PufferOutcome go_step(Go *env) {
    if (env->players == 2) return go_play_turn_of_two(env);
    return env->words == 1 ? go_play_turn(env, 1) : go_play_turn(env, env->words);
}

#endif
