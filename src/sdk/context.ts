/**
 * Building blocks of context managers: {@link SimpleContext}, whose views always fit, its configuration, and
 * mounting. The built-in contexts extend it.
 *
 * @module
 */
export { type Config, CONFIG_SCHEMA, type NoticeVerbosity, parseConfig } from "./context/config.ts";
export type { SystemPromptFactory } from "./context/request_message.ts";
export { type ContextStatus, publish, SimpleContext, type SummaryFacts } from "./context/simple_context.ts";
export type { TokenMeter } from "./context/calibration.ts";
