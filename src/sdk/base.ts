/**
 * The SDK for modules without `z`: contracts, data models, errors, `defineTool` and the other define
 * functions. A module that imports it instead of `preamp` does not load zod, so that its first session starts
 * sooner.
 *
 * @module
 */
export {
  canonicalJson,
  deepFreeze,
  isObject,
  jsonEqual,
  type JsonObject,
  type JsonSchema,
  type JsonValue,
  toFrozenObject,
  toPlain,
  toPlainObject,
} from "./json.ts";
export {
  type ErrorCode,
  errorCode,
  type ErrorDetail,
  errorMessage,
  errorName,
  hasCode,
  PreampError,
  type PreampErrorOptions,
} from "./errors.ts";
export type { ContextOverflow } from "./context_overflow.ts";
export * from "./llm_errors.ts";
export type * from "./content_blocks.ts";
export { imageBlock, imageFromBase64 } from "./images.ts";
export { MAX_IMAGE_BYTES } from "./image_types.ts";
export type { ResultBlock } from "./result_content.ts";
export * from "./tools.ts";
export * from "./messages.ts";
export * from "./providers.ts";
export { costOf, parsePrices, type Prices, PRICES_SCHEMA } from "./money.ts";
export * from "./hook_result.ts";
export * from "./hooks.ts";
export * from "./contracts.ts";
export { type SessionState, SessionStatus, type SessionStatusFields } from "./session_status.ts";
export type * from "./spawn.ts";
export type { GitSource, Mode, ModuleSpec, MountPlan, Source } from "./plan.ts";
export * from "./cancellation.ts";
export * from "./token_estimate.ts";
export * from "./retry.ts";
export * from "./define.ts";
export { readConfig, type RefuseConfig } from "./config.ts";
export { addSnakeCase, inputSchemaOf, methodOf, withSnakeCase } from "./snake_case_aliases.ts";
export { compileGlob, type Glob } from "./glob.ts";
export * from "./hosts.ts";
export * from "./paths.ts";
export * from "./pinned_tools.ts";
