/* CarRacing-v3 of Gymnasium, with all its options.
 *
 * Results equal those of Gymnasium byte by byte. So operations have the order and the precision of its Python code,
 * which computes with doubles. Box2D computes with floats. */
#ifndef PUFFER_CAR_RACING_H
#define PUFFER_CAR_RACING_H

#include "car_picture.h"
#include "game.h"

enum {
    CAR_BYTES = PICTURE_SIDE * PICTURE_SIDE * 3,
    CAR_WHEELS = BOX2D_LIMBS,
    CAR_CHECKPOINTS = 12,
    CAR_MAX_TILES = 2500, /* steps of the search for a track */
    CAR_BORDER_TILES = 4, /* in a row that turn hard have a border */
    CAR_GRASS = 20,       /* patches of grass along a side of the field, with as much space between them */
    CAR_TEXTS = 1001,     /* texts of the rewards 0 to 1000, after which those of negative ones come */
};

#define CAR_SCALE      6.0
#define CAR_RADIUS     (900 / CAR_SCALE)
#define CAR_FIELD      (2000 / CAR_SCALE)
#define CAR_ZOOM       2.7
#define CAR_STEP       (21 / CAR_SCALE)
#define CAR_TURN       0.31
#define CAR_WIDTH      (40 / CAR_SCALE) /* half the width of the road */
#define CAR_BORDER     (8 / CAR_SCALE)
#define CAR_GRASS_SIZE (CAR_FIELD / 20.0)
#define CAR_SIZE       0.02
#define CAR_POWER      (100000000 * CAR_SIZE * CAR_SIZE)
#define CAR_INERTIA    (4000 * CAR_SIZE * CAR_SIZE) /* of a wheel */
#define CAR_GRIP       (1000000 * CAR_SIZE * CAR_SIZE)
#define CAR_STIFFNESS  (205000 * CAR_SIZE * CAR_SIZE)
#define CAR_WHEEL_LONG 27 /* half the length of a wheel */
#define CAR_WHEEL_WIDE 14
#define CAR_SECONDS    (1.0 / BOX2D_FPS)

typedef struct {
    double x, y;
} CarPoint;

typedef struct {
    CarPoint corners[4];
    uint32_t color;
} CarPolygon;

typedef struct {
    CarPolygon *polygon;
    bool is_first, is_visited;
} CarTile;

typedef struct {
    double steer, gas, brake;
    double phase, omega; /* angle and angular velocity */
    int32_t num_tiles;   /* that it touches */
} CarWheel;

/* An episode. The last arrays are larger than a track, so most of their memory is never used. */
typedef struct Car {
    CarWheel wheels[CAR_WHEELS];
    double time, reward, reward_before;
    double road[3]; /* its color */
    uint32_t background, grass;
    int32_t num_tiles, num_visited, num_polygons;
    double lap_percent; /* part of the tiles that is a lap */
    bool has_lap;
    CarTile tiles[CAR_MAX_TILES];
    CarPolygon polygons[2 * CAR_MAX_TILES]; /* of tiles and borders, in the order in which they are drawn */
} Car;

static int32_t car_actions(const Box2DOptions *options) {
    return options->is_continuous ? 3 : 1;
}

static inline double car_sign(double x) {
    return (x > 0) - (x < 0);
}

/* ---- Track -------------------------------------------------------------------------------------------- */

/* A step of the search for a track. */
typedef struct {
    double alpha, beta; /* angle around the center of the field, and direction of the road */
    CarPoint point;
} CarStep;

typedef struct {
    double alpha;
    CarPoint point;
} CarCheckpoint;

static void car_place_checkpoints(Box2DGame *game, CarCheckpoint *checkpoints) {
    for (int32_t i = 0; i < CAR_CHECKPOINTS; i++) {
        const double noise = puffer_uniform(&game->generator, 0, 2 * PUFFER_PI * 1 / CAR_CHECKPOINTS);
        double alpha = 2 * PUFFER_PI * i / CAR_CHECKPOINTS + noise;
        double radius = puffer_uniform(&game->generator, CAR_RADIUS / 3, CAR_RADIUS);
        if (i == 0) alpha = 0;
        if (i == CAR_CHECKPOINTS - 1) alpha = 2 * PUFFER_PI * i / CAR_CHECKPOINTS;
        if (i == 0 || i == CAR_CHECKPOINTS - 1) radius = 1.5 * CAR_RADIUS;
        checkpoints[i] = (CarCheckpoint){alpha, {radius * cos(alpha), radius * sin(alpha)}};
    }
}

/* Drives from checkpoint to checkpoint for some laps. Returns the number of steps. */
static int32_t car_search(const CarCheckpoint *checkpoints, CarStep *steps) {
    double x = 1.5 * CAR_RADIUS, y = 0, beta = 0;
    int32_t num_steps = 0, laps = 0, next = 0;
    bool has_crossed = false; /* to the other side of the field */
    while (laps <= 4 && num_steps < CAR_MAX_TILES) {
        double alpha = atan2(y, x);
        if (has_crossed && alpha > 0) {
            laps++;
            has_crossed = false;
        }
        if (alpha < 0) {
            has_crossed = true;
            alpha += 2 * PUFFER_PI;
        }
        while (alpha > checkpoints[next].alpha) {
            next = (next + 1) % CAR_CHECKPOINTS;
            if (next == 0) alpha -= 2 * PUFFER_PI;
        }
        const double ahead_x = cos(beta), ahead_y = sin(beta);
        const double to_x = checkpoints[next].point.x - x, to_y = checkpoints[next].point.y - y;
        const double distance = (ahead_x * to_x + ahead_y * to_y) * CAR_SCALE;
        while (beta - alpha > 1.5 * PUFFER_PI) beta -= 2 * PUFFER_PI;
        while (beta - alpha < -1.5 * PUFFER_PI) beta += 2 * PUFFER_PI;
        const double before = beta, turn = fmin(CAR_TURN, fabs(0.001 * distance));
        if (distance > 0.3) beta -= turn;
        if (distance < -0.3) beta += turn;
        x += -ahead_y * CAR_STEP;
        y += ahead_x * CAR_STEP;
        steps[num_steps++] = (CarStep){alpha, before * 0.5 + beta * 0.5, {x, y}};
    }
    return num_steps;
}

/* Finds the last whole lap. Returns its number of steps, or 0 if there is none that is closed. */
static int32_t car_find_lap(const CarStep *steps, int32_t num_steps, const CarStep **lap) {
    const double start = 2 * PUFFER_PI * -0.5 / CAR_CHECKPOINTS;
    int32_t first = -1, end = -1;
    for (int32_t i = num_steps - 1; i > 0 && first < 0; i--) {
        if (!(steps[i].alpha > start && steps[i - 1].alpha <= start)) continue;
        if (end < 0) {
            end = i;
        } else {
            first = i;
        }
    }
    if (first < 0) return 0;
    const CarStep *one = &steps[first], *other = &steps[end - 2];
    const double x = cos(one->beta) * (one->point.x - other->point.x);
    const double y = sin(one->beta) * (one->point.y - other->point.y);
    *lap = one;
    return sqrt(x * x + y * y) > CAR_STEP ? 0 : end - 1 - first;
}

/* Marks the tiles of hard turns, and those before them. */
static void car_mark_borders(const CarStep *lap, int32_t num_tiles, bool *has_border) {
    for (int32_t i = 0; i < num_tiles; i++) {
        int32_t turns = 0;
        bool is_hard = true;
        for (int32_t j = 0; j < CAR_BORDER_TILES; j++) {
            const int32_t tile = (i - j + num_tiles) % num_tiles, before = (tile + num_tiles - 1) % num_tiles;
            const double turn = lap[tile].beta - lap[before].beta;
            is_hard &= fabs(turn) > CAR_TURN * 0.2;
            turns += (int32_t)car_sign(turn);
        }
        has_border[i] = is_hard && abs(turns) == CAR_BORDER_TILES;
    }
    for (int32_t i = 0; i < num_tiles; i++) {
        for (int32_t j = 0; j < CAR_BORDER_TILES; j++) {
            has_border[(i - j + num_tiles) % num_tiles] |= has_border[i];
        }
    }
}

/* Returns the point at a distance from the middle of the road, to the right. */
static inline CarPoint car_beside(const CarStep *step, double distance) {
    return (CarPoint){step->point.x + distance * cos(step->beta), step->point.y + distance * sin(step->beta)};
}

/* Adds a polygon from one step to another, between two distances from the middle of the road. */
static CarPolygon *car_add_polygon(Car *car, const CarStep *one, const CarStep *other, double near,
                                   double far, uint32_t color) {
    CarPolygon *polygon = &car->polygons[car->num_polygons++];
    *polygon = (CarPolygon){
        {car_beside(one, near), car_beside(one, far), car_beside(other, far), car_beside(other, near)},
        color};
    return polygon;
}

static inline uint32_t car_road_color(const Car *car, double lighter) {
    const double *road = car->road;
    return picture_color((int32_t)(road[0] + lighter), (int32_t)(road[1] + lighter),
                         (int32_t)(road[2] + lighter));
}

static Box2DBody *car_make_tile(const Box2DEngine *engine, Box2DGame *game, int32_t index,
                                const CarPolygon *polygon) {
    Box2DVec points[4];
    for (int32_t i = 0; i < 4; i++) points[i] = box2d_vec(polygon->corners[i].x, polygon->corners[i].y);
    const Box2DPolygon shape = box2d_polygon(engine, points, 4);
    Box2DFixtureDef fixture = box2d_fixture(&shape, 0, 0.2, 1, UINT16_MAX);
    fixture.is_sensor = true;
    Box2DBody *body = box2d_body(engine, game->world, BOX2D_STATIC, box2d_vec(0, 0), 0, &fixture);
    body->user_data = &game->car->tiles[index];
    return body;
}

/* Makes the tiles of a track. Returns its first step. */
static CarStep car_make_track(const Box2DEngine *engine, Box2DGame *game) {
    Car *car = game->car;
    CarStep steps[CAR_MAX_TILES];
    const CarStep *lap;
    bool has_border[CAR_MAX_TILES];
    Box2DBody *bodies[CAR_MAX_TILES];
    do {
        CarCheckpoint checkpoints[CAR_CHECKPOINTS];
        car_place_checkpoints(game, checkpoints);
        car->num_tiles = car_find_lap(steps, car_search(checkpoints, steps), &lap);
    } while (car->num_tiles == 0);
    car_mark_borders(lap, car->num_tiles, has_border);
    car->num_polygons = 0;
    for (int32_t i = 0; i < car->num_tiles; i++) {
        const CarStep *one = &lap[i], *other = &lap[i > 0 ? i - 1 : car->num_tiles - 1];
        const uint32_t color = car_road_color(car, 0.01 * (i % 3) * 255);
        CarPolygon *polygon = car_add_polygon(car, one, other, -CAR_WIDTH, CAR_WIDTH, color);
        car->tiles[i] = (CarTile){polygon, i == 0, false};
        bodies[i] = car_make_tile(engine, game, i, polygon);
        if (!has_border[i]) continue;
        const double side = car_sign(other->beta - one->beta);
        car_add_polygon(car, one, other, side * CAR_WIDTH, side * (CAR_WIDTH + CAR_BORDER),
                        i % 2 ? picture_color(255, 0, 0) : picture_color(255, 255, 255));
    }
    for (int32_t i = car->num_tiles - 1; i >= 0; i--) { /* Gymnasium destroys the first one first */
        box2d_add_terrain(game, bodies[i]);
    }
    return lap[0];
}

/* ---- Contacts ----------------------------------------------------------------------------------------- */

/* Returns the wheel that begins or ends to touch a tile, or NULL. The hull also colors a tile. */
static CarWheel *car_touch(const Car *car, const Box2DContact *contact, CarTile **tile) {
    const Box2DBody *one = contact->fixture_a->body, *other = contact->fixture_b->body;
    const Box2DBody *ground = one->type == BOX2D_STATIC ? one : other, *part = ground == one ? other : one;
    if (ground->type != BOX2D_STATIC) return NULL;
    *tile = ground->user_data;
    (*tile)->polygon->color = car_road_color(car, 0);
    return part->user_data;
}

static void car_begin_contact(void *listener, const Box2DContact *contact) {
    Box2DGame *game = listener;
    Car *car = game->car;
    CarTile *tile;
    CarWheel *wheel = car_touch(car, contact, &tile);
    if (wheel == NULL) return;
    wheel->num_tiles++;
    if (tile->is_visited) return;
    tile->is_visited = true;
    car->reward += 1000.0 / car->num_tiles;
    car->num_visited++;
    car->has_lap |= tile->is_first && (double)car->num_visited / car->num_tiles > car->lap_percent;
}

static void car_end_contact(void *listener, const Box2DContact *contact) {
    const Box2DGame *game = listener;
    CarTile *tile;
    CarWheel *wheel = car_touch(game->car, contact, &tile);
    if (wheel != NULL) wheel->num_tiles--;
}

static const Box2DListenerMethods car_listener = {
    .begin = car_begin_contact,
    .end = car_end_contact,
    .pre_solve = box2d_ignore,
    .post_solve = box2d_ignore,
};

/* ---- Car ---------------------------------------------------------------------------------------------- */

/* Chooses the colors of an episode. */
static void car_choose_colors(Box2DGame *game) {
    Car *car = game->car;
    double background[3], grass[3];
    for (int32_t i = 0; i < 3; i++) car->road[i] = puffer_uniform(&game->generator, 0, 210);
    for (int32_t i = 0; i < 3; i++) grass[i] = background[i] = puffer_uniform(&game->generator, 0, 210);
    grass[puffer_integer(&game->generator, 3)] += 20;
    car->background = picture_color((int32_t)background[0], (int32_t)background[1], (int32_t)background[2]);
    car->grass = picture_color((int32_t)grass[0], (int32_t)grass[1], (int32_t)grass[2]);
}

static Box2DPolygon car_shape(const Box2DEngine *engine, const int16_t (*outline)[2], int32_t count) {
    Box2DVec points[PICTURE_CORNERS];
    for (int32_t i = 0; i < count; i++) {
        points[i] = box2d_vec(outline[i][0] * CAR_SIZE, outline[i][1] * CAR_SIZE);
    }
    return box2d_polygon(engine, points, count);
}

static void car_make_hull(const Box2DEngine *engine, Box2DGame *game, const CarStep *start) {
    static const struct {
        int32_t count;
        int16_t outline[PICTURE_CORNERS][2];
    } parts[] = {
        {4, {{-60, 130}, {60, 130}, {60, 110}, {-60, 110}}},
        {4, {{-15, 120}, {15, 120}, {20, 20}, {-20, 20}}},
        {8, {{25, 20}, {50, -10}, {50, -40}, {20, -90}, {-20, -90}, {-50, -40}, {-50, -10}, {-25, 20}}},
        {4, {{-50, -120}, {50, -120}, {50, -90}, {-50, -90}}},
    };
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        const Box2DPolygon shape = car_shape(engine, parts[i].outline, parts[i].count);
        const Box2DFixtureDef fixture = box2d_fixture(&shape, 1, 0.2, 1, UINT16_MAX);
        if (i > 0) {
            engine->make_fixture(game->hull, &fixture);
        } else {
            game->hull = box2d_body(engine, game->world, BOX2D_DYNAMIC,
                                    box2d_vec(start->point.x, start->point.y), start->beta, &fixture);
        }
    }
}

static void car_make_wheel(const Box2DEngine *engine, Box2DGame *game, const CarStep *start, double x,
                           double y) {
    static const int16_t outline[][2] = {{-CAR_WHEEL_WIDE, CAR_WHEEL_LONG},
                                         {CAR_WHEEL_WIDE, CAR_WHEEL_LONG},
                                         {CAR_WHEEL_WIDE, -CAR_WHEEL_LONG},
                                         {-CAR_WHEEL_WIDE, -CAR_WHEEL_LONG}};
    const int32_t limb = game->num_limbs++;
    const Box2DPolygon shape = car_shape(engine, outline, 4);
    const Box2DFixtureDef fixture = box2d_fixture(&shape, 0.1, 0.2, 0x20, 1);
    const Box2DVec position = box2d_vec(start->point.x + x * CAR_SIZE, start->point.y + y * CAR_SIZE);
    game->limbs[limb] = box2d_body(engine, game->world, BOX2D_DYNAMIC, position, start->beta, &fixture);
    game->limbs[limb]->user_data = &game->car->wheels[limb];
    box2d_connect(engine, game, game->hull, limb,
                  (Box2DJointDef){
                      .anchor_a = box2d_vec(x * CAR_SIZE, y * CAR_SIZE),
                      .max_torque = (float)(180 * 900 * CAR_SIZE * CAR_SIZE),
                      .lower = -0.4f,
                      .upper = 0.4f,
                  });
}

static void car_begin(const Box2DEngine *engine, const Box2DOptions *options, Box2DGame *game) {
    if (game->car == NULL) game->car = malloc(sizeof *game->car);
    Car *car = game->car;
    game->methods = &car_listener;
    memset(car, 0, offsetof(Car, tiles));
    car->lap_percent = options->lap_percent;
    if (options->has_random_colors) {
        car_choose_colors(game);
    } else {
        car->road[0] = car->road[1] = car->road[2] = 102;
        car->background = picture_color(102, 204, 102);
        car->grass = picture_color(102, 230, 102);
    }
    const CarStep start = car_make_track(engine, game);
    car_make_hull(engine, game, &start);
    car_make_wheel(engine, game, &start, -55, 80);
    car_make_wheel(engine, game, &start, 55, 80);
    car_make_wheel(engine, game, &start, -55, -82);
    car_make_wheel(engine, game, &start, 55, -82);
}

static void car_control(Car *car, double steer, double gas, double brake) {
    const double wanted = fmax(0, fmin(gas, 1));
    car->wheels[0].steer = car->wheels[1].steer = steer;
    for (int32_t i = 0; i < CAR_WHEELS; i++) car->wheels[i].brake = brake;
    for (int32_t i = 2; i < CAR_WHEELS; i++) { /* rear wheels */
        const double more = wanted - car->wheels[i].gas;
        car->wheels[i].gas += more > 0.1 ? 0.1 : more;
    }
}

/* Turns a wheel, and pushes it along the ground. */
static void car_step_wheel(const Box2DEngine *engine, CarWheel *wheel, Box2DBody *body, Box2DJoint *joint) {
    const double turn = wheel->steer - (double)engine->joint_angle(joint);
    engine->set_motor_speed(joint, (float)(car_sign(turn) * fmin(50.0 * fabs(turn), 3.0)));
    const double grip = wheel->num_tiles > 0 ? CAR_GRIP : CAR_GRIP * 0.6;
    const double ahead_x = -body->sine, ahead_y = body->cosine, side_x = body->cosine, side_y = body->sine;
    const double velocity_x = body->velocity.x, velocity_y = body->velocity.y;
    wheel->omega += CAR_SECONDS * CAR_POWER * wheel->gas / CAR_INERTIA / (fabs(wheel->omega) + 5.0);
    if (wheel->brake >= 0.9) {
        wheel->omega = 0;
    } else if (wheel->brake > 0) {
        wheel->omega += -car_sign(wheel->omega) * fmin(15 * wheel->brake, fabs(wheel->omega));
    }
    wheel->phase += wheel->omega * CAR_SECONDS;
    const double radius = CAR_WHEEL_LONG * CAR_SIZE;
    double along = -(ahead_x * velocity_x + ahead_y * velocity_y) + wheel->omega * radius;
    double across = -(side_x * velocity_x + side_y * velocity_y);
    along *= CAR_STIFFNESS;
    across *= CAR_STIFFNESS;
    const double force = sqrt(along * along + across * across);
    if (force > grip) {
        along = along / force * grip;
        across = across / force * grip;
    }
    wheel->omega -= CAR_SECONDS * along * radius / CAR_INERTIA;
    box2d_force(body, box2d_vec(across * side_x + along * ahead_x, across * side_y + along * ahead_y));
}

/* ---- Picture ------------------------------------------------------------------------------------------ */

/* Rotation, zoom and translation of the camera, which follows the car. */
typedef struct {
    double zoom, sine, cosine, x, y;
} CarView;

static inline CarPoint car_turn(const CarView *view, double x, double y) {
    return (CarPoint){view->cosine * x - view->sine * y, view->sine * x + view->cosine * y};
}

static inline PicturePoint car_project(const CarView *view, double x, double y) {
    const CarPoint turned = car_turn(view, x, y);
    return (PicturePoint){(int32_t)(turned.x * view->zoom + view->x),
                          (int32_t)(turned.y * view->zoom + view->y)};
}

static CarView car_view(const Car *car, const Box2DBody *hull) {
    static const int8_t sines[] = {0, 1, 0, -1, 0, 1};
    const double margin = 1e-6, quarter = PUFFER_PI / 2;
    const double time = car->time; /* in the first second, the camera moves closer */
    CarView view = {.zoom = 0.1 * CAR_SCALE * fmax(1 - time, 0) + CAR_ZOOM * CAR_SCALE * fmin(time, 1)};
    double angle = fmod(-(double)hull->angle, 2 * PUFFER_PI);
    if (angle < 0) angle += 2 * PUFFER_PI;
    if (fmod(angle + margin, quarter) < 2 * margin) { /* pygame rounds to right angles */
        const int32_t quarters = (int32_t)((angle + margin) / quarter);
        view.sine = sines[quarters];
        view.cosine = sines[quarters + 1];
    } else {
        view.sine = sin(angle);
        view.cosine = cos(angle);
    }
    const CarPoint center = car_turn(&view, -hull->position.x * view.zoom, -hull->position.y * view.zoom);
    view.x = PICTURE_WIDTH / 2.0 + center.x;
    view.y = PICTURE_HEIGHT / 4.0 + center.y;
    return view;
}

static void car_draw_polygon(Picture *picture, const CarView *view, const CarPolygon *polygon) {
    const CarPoint *corners = polygon->corners;
    PicturePoint points[4];
    for (int32_t i = 0; i < 4; i++) points[i] = car_project(view, corners[i].x, corners[i].y);
    picture_smooth_polygon(picture, points, polygon->color);
}

static void car_draw_ground(Picture *picture, const Car *car, const CarView *view) {
    const CarPolygon field = {
        {{CAR_FIELD, CAR_FIELD}, {CAR_FIELD, -CAR_FIELD}, {-CAR_FIELD, -CAR_FIELD}, {-CAR_FIELD, CAR_FIELD}},
        car->background};
    car_draw_polygon(picture, view, &field);
    for (int32_t x = -CAR_GRASS; x < CAR_GRASS; x += 2) {
        for (int32_t y = -CAR_GRASS; y < CAR_GRASS; y += 2) {
            const double left = CAR_GRASS_SIZE * x, top = CAR_GRASS_SIZE * y;
            const double right = left + CAR_GRASS_SIZE, bottom = top + CAR_GRASS_SIZE;
            const CarPolygon patch = {{{right, top}, {left, top}, {left, bottom}, {right, bottom}},
                                      car->grass};
            car_draw_polygon(picture, view, &patch);
        }
    }
    for (int32_t i = 0; i < car->num_polygons; i++) car_draw_polygon(picture, view, &car->polygons[i]);
}

/* Draws a polygon that is fixed to a body. */
static void car_draw_part(Picture *picture, const CarView *view, const Box2DBody *body,
                          const Box2DVec *corners, int32_t count, uint32_t color) {
    PicturePoint points[PICTURE_CORNERS];
    for (int32_t i = 0; i < count; i++) {
        const float x = body->cosine * corners[i].x - body->sine * corners[i].y + body->position.x;
        const float y = body->sine * corners[i].x + body->cosine * corners[i].y + body->position.y;
        points[i] = car_project(view, x, y);
    }
    picture_polygon(picture, points, count, color);
}

static void car_draw_body(Picture *picture, const CarView *view, const Box2DBody *body, uint32_t color) {
    for (const Box2DFixture *fixture = body->fixtures; fixture != NULL; fixture = fixture->next) {
        const Box2DPolygon *shape = fixture->shape;
        car_draw_part(picture, view, body, shape->vertices, shape->num_vertices, color);
    }
}

/* Draws the light part of a tire, if it is on the upper side. */
static void car_draw_tread(Picture *picture, const CarView *view, const Box2DBody *body, double phase) {
    const double width = CAR_WHEEL_WIDE * CAR_SIZE;
    const bool is_first_below = sin(phase) > 0, is_second_below = sin(phase + 1.2) > 0;
    double first = cos(phase), second = cos(phase + 1.2);
    if (is_first_below && is_second_below) return;
    if (is_first_below) first = car_sign(first);
    if (is_second_below) second = car_sign(second);
    first = CAR_WHEEL_LONG * first * CAR_SIZE;
    second = CAR_WHEEL_LONG * second * CAR_SIZE;
    const Box2DVec corners[] = {box2d_vec(-width, first), box2d_vec(width, first), box2d_vec(width, second),
                                box2d_vec(-width, second)};
    car_draw_part(picture, view, body, corners, 4, picture_color(77, 77, 77));
}

/* Draws a bar of the panel if the value is not almost 0. */
static void car_draw_bar(Picture *picture, int32_t place, double value, double length, bool is_upright,
                         uint32_t color) {
    const double width = PICTURE_WIDTH / 40.0, height = PICTURE_HEIGHT / 40.0;
    if (!(fabs(value) > 1e-4)) return;
    if (is_upright) {
        picture_rectangle(picture, place * width, PICTURE_HEIGHT - (height + height * length),
                          (place + 1) * width, PICTURE_HEIGHT - height, color);
    } else {
        picture_rectangle(picture, place * width, PICTURE_HEIGHT - 4 * height, (place + length) * width,
                          PICTURE_HEIGHT - 2 * height, color);
    }
}

static void car_draw_panel(Picture *picture, const Box2DEngine *engine, const Box2DOptions *options,
                           const Box2DGame *game) {
    const Car *car = game->car;
    const Box2DBody *hull = game->hull;
    const double velocity_x = hull->velocity.x, velocity_y = hull->velocity.y, spin = hull->angular_velocity;
    const double speed = sqrt(velocity_x * velocity_x + velocity_y * velocity_y);
    const double steering = engine->joint_angle(game->joints[0]);
    car_draw_bar(picture, 5, speed, 0.02 * speed, true, picture_color(255, 255, 255));
    for (int32_t i = 0; i < CAR_WHEELS; i++) {
        const double omega = car->wheels[i].omega;
        car_draw_bar(picture, 7 + i, omega, 0.01 * omega, true, picture_color(i < 2 ? 0 : 51, 0, 255));
    }
    car_draw_bar(picture, 20, steering, -10.0 * steering, false, picture_color(0, 255, 0));
    car_draw_bar(picture, 30, spin, -0.8 * spin, false, picture_color(255, 0, 0));
    const PictureText *texts = (const PictureText *)options->texts;
    const int32_t reward = (int32_t)fabs(rint(car->reward));
    picture_write(picture, &texts[signbit(car->reward) ? CAR_TEXTS + reward : reward], 60,
                  PICTURE_HEIGHT - PICTURE_HEIGHT / 16);
}

/* Returns the canvas of this thread. Inlined, its address would be looked up for each pixel. */
static __attribute__((noinline)) Picture *car_canvas(void) {
    static _Thread_local Picture picture;
    return &picture;
}

static void car_draw(const Box2DEngine *engine, const Box2DOptions *options, const Box2DGame *game,
                     uint8_t *image) {
    Picture *picture = car_canvas();
    const Car *car = game->car;
    const CarView view = car_view(car, game->hull);
    memset(picture->cells, 0, sizeof picture->cells);
    car_draw_ground(picture, car, &view);
    for (int32_t i = 0; i < CAR_WHEELS; i++) {
        car_draw_body(picture, &view, game->limbs[i], picture_color(0, 0, 0));
        car_draw_tread(picture, &view, game->limbs[i], car->wheels[i].phase);
    }
    car_draw_body(picture, &view, game->hull, picture_color(204, 0, 0));
    car_draw_panel(picture, engine, options, game);
    picture_scale(picture, options->channels_first, image);
}

/* ---- Steps -------------------------------------------------------------------------------------------- */

static double car_step(const Box2DEngine *engine, const Box2DOptions *options, Box2DGame *game,
                       const void *actions, void *row, bool *is_over) {
    Car *car = game->car;
    const bool is_first = car->time == 0; /* step of an episode, which has no action */
    if (!is_first && options->is_continuous) {
        const float *action = actions;
        if (isnan(action[0]) || isnan(action[1]) || isnan(action[2])) return NAN;
        car_control(car, -action[0], action[1], action[2]);
    } else if (!is_first) {
        const int32_t action = *(const int32_t *)actions;
        car_control(car, -0.6 * (action == 1) + 0.6 * (action == 2), 0.2 * (action == 3),
                    0.8 * (action == 4));
    }
    for (int32_t i = 0; i < CAR_WHEELS; i++) {
        car_step_wheel(engine, &car->wheels[i], game->limbs[i], game->joints[i]);
    }
    box2d_step_world(engine, game);
    car->time += CAR_SECONDS;
    car_draw(engine, options, game, row);
    if (is_first) return 0;
    car->reward -= 0.1;
    const double reward = car->reward - car->reward_before;
    const bool is_outside =
        fabs(game->hull->position.x) > CAR_FIELD || fabs(game->hull->position.y) > CAR_FIELD;
    car->reward_before = car->reward;
    game->has_finished = !is_outside && (car->num_visited == car->num_tiles || car->has_lap);
    *is_over = is_outside || game->has_finished;
    return is_outside ? -100 : reward;
}

#endif
