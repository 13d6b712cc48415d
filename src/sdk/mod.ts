/**
 * The SDK for modules: contracts, data models, errors, `defineTool` and the other define functions, and `z` for
 * schemas.
 *
 * @module
 */
export * from "./base.ts";
export { z } from "./z.ts";
