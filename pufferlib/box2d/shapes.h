/* Pictures of LunarLander and BipedalWalker. They show the bodies of the world, and are not those of pygame. */
#ifndef PUFFER_BOX2D_SHAPES_H
#define PUFFER_BOX2D_SHAPES_H

#include "game.h"

#define SHAPES_SKY    0xD6E6FFu
#define SHAPES_GRASS  0x66994Cu
#define SHAPES_STONE  0xC4C4C4u
#define SHAPES_PURPLE 0x8066E6u
#define SHAPES_NEAR   0xC46496u /* leg */
#define SHAPES_FAR    0x804A70u

enum { SHAPES_WIDTH = 600, SHAPES_HEIGHT = 400 };

/* Fills a convex polygon, whose corners are in px. */
static inline void shapes_fill(PufferCanvas *canvas, const Box2DVec *corners, int32_t count, uint32_t color) {
    for (int32_t row = 0; row < canvas->height; row++) {
        const float y = (float)row + 0.5f;
        float left = (float)canvas->width, right = 0;
        for (int32_t i = 0; i < count; i++) {
            const Box2DVec a = corners[i], b = corners[(i + 1) % count];
            if ((a.y <= y) == (b.y <= y)) continue;
            const float x =
                puffer_clamp(a.x + (y - a.y) * (b.x - a.x) / (b.y - a.y), 0, (float)canvas->width);
            left = puffer_min(left, x), right = puffer_max(right, x);
        }
        if (left < right) {
            const int32_t first = (int32_t)(left + 0.5f), end = (int32_t)(right + 0.5f);
            draw_rectangle(canvas, first, row, end - first, 1, color);
        }
    }
}

/* Returns where a point is in the picture. `scroll` is the left end of the picture in the world. */
static inline Box2DVec shapes_point(const PufferCanvas *canvas, double scroll, double x, double y) {
    return box2d_vec((x - scroll) * BOX2D_SCALE, canvas->height - y * BOX2D_SCALE);
}

/* Draws the shapes of a body. The ground below an edge is filled. */
static inline void shapes_body(PufferCanvas *canvas, double scroll, const Box2DBody *body, uint32_t color) {
    Box2DVec corners[BOX2D_VERTICES];
    for (const Box2DFixture *fixture = body->fixtures; fixture != NULL; fixture = fixture->next) {
        const Box2DShape *shape = fixture->shape;
        const Box2DPolygon *polygon = fixture->shape;
        const Box2DEdge *edge = fixture->shape;
        if (shape->type == BOX2D_EDGE) {
            corners[0] = shapes_point(canvas, scroll, edge->from.x, edge->from.y);
            corners[1] = shapes_point(canvas, scroll, edge->to.x, edge->to.y);
            corners[2] = shapes_point(canvas, scroll, edge->to.x, 0);
            corners[3] = shapes_point(canvas, scroll, edge->from.x, 0);
            shapes_fill(canvas, corners, 4, color);
        } else if (shape->type == BOX2D_POLYGON) {
            for (int32_t i = 0; i < polygon->num_vertices; i++) {
                const Box2DVec at = polygon->vertices[i];
                corners[i] =
                    shapes_point(canvas, scroll, body->position.x + body->cosine * at.x - body->sine * at.y,
                                 body->position.y + body->sine * at.x + body->cosine * at.y);
            }
            shapes_fill(canvas, corners, polygon->num_vertices, color);
        }
    }
}

/* Draws a flag on the ground. */
static inline void shapes_flag(PufferCanvas *canvas, double scroll, double x, double y) {
    const Box2DVec foot = shapes_point(canvas, scroll, x, y);
    draw_rectangle(canvas, (int32_t)foot.x, (int32_t)foot.y - 50, 2, 50, DRAW_WHITE);
    const Box2DVec cloth[] = {
        {foot.x + 2, foot.y - 50}, {foot.x + 27, foot.y - 45}, {foot.x + 2, foot.y - 40}};
    shapes_fill(canvas, cloth, 3, DRAW_RED);
}

/* Draws a flame that leaves the body at (x, y) in the direction of (across, down), in px of the upright body. */
static inline void shapes_flame(PufferCanvas *canvas, const Box2DBody *body, double x, double y,
                                double across, double down) {
    const double corners[][2] = {
        {x - down / 4, y - across / 4}, {x + across, y - down}, {x + down / 4, y + across / 4}};
    Box2DVec points[3];
    for (int32_t i = 0; i < 3; i++) {
        const double side = corners[i][0] / BOX2D_SCALE, up = corners[i][1] / BOX2D_SCALE;
        points[i] = shapes_point(canvas, 0, body->position.x + body->cosine * side - body->sine * up,
                                 body->position.y + body->sine * side + body->cosine * up);
    }
    shapes_fill(canvas, points, 3, DRAW_ORANGE);
}

static inline void shapes_bodies(PufferCanvas *canvas, double scroll, const Box2DGame *game,
                                 uint32_t ground) {
    for (int32_t i = 0; i < game->num_terrain; i++) shapes_body(canvas, scroll, game->terrain[i], ground);
    for (int32_t i = 0; i < game->num_limbs; i++) {
        const bool is_far = game->num_limbs == BOX2D_LIMBS && i < BOX2D_LIMBS / 2;
        shapes_body(canvas, scroll, game->limbs[i], is_far ? SHAPES_FAR : SHAPES_NEAR);
    }
    shapes_body(canvas, scroll, game->hull, SHAPES_PURPLE);
}

#endif
