/* The names of product.inc.h end. */
#undef PANELS
#undef OPERANDS
#undef PRODUCT
#undef PRODUCT_ROWS
#undef PRODUCT_ROW
#undef PRODUCT_FEW
#undef PRODUCT_STORE
#undef PRODUCT_GATHER
#undef PRODUCT_AHEAD
#undef PRODUCT_COPY
#undef PRODUCT_THEN
#undef PRODUCT_GIVE
#undef TILE
#undef TILE_ROWS
#undef TILE_SIDE
#undef WIDENS
#undef COPIES
