/**
 * What loops are made of: choose a provider, place injections, tell an answer block by block, run tool calls, and the whole
 * loop that the built-in orchestrators are.
 *
 * @module
 */
export { BlockTeller } from "./loop/blocks.ts";
export { assistantMessage, responseData } from "./loop/answer.ts";
export { isPassing, providerFailure, retriesItself } from "./loop/failures.ts";
export { chooseProvider, type ChosenProvider, nextProvider, rankProviders } from "./loop/providers.ts";
export { injectionMessage, placeInjections, ToolOffer } from "./loop/requests.ts";
export { createLoop, type LoopConfig } from "./loop/run.ts";
export { type SelectingParts, type Selection, selectTool } from "./loop/selecting.ts";
export { type Standing, standingOf } from "./loop/standing.ts";
export { SteeringQueue } from "./loop/steering.ts";
export {
  type BatchResult,
  findTool,
  runToolCalls,
  type ToolBatch,
  toolErrorType,
} from "./loop/tool_calls.ts";
export { inputProblems } from "./loop/input_check.ts";
export { loopConfigSchema, type LoopSchemaDefaults } from "./loop/config_schema.ts";
export { type LoopDefaults, mountLoop } from "./loop/mount.ts";
