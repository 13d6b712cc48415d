/**
 * Building blocks of loops: choose a provider, place injections, build a request, let
 * hooks select tool calls; and the loop of the built-in orchestrators.
 *
 * @module
 */
export { assistantMessage, responseData, type Standing, standingOf } from "./loop/assistant_message.ts";
export { isPassing, providerFailure, retriesItself } from "./loop/provider_errors.ts";
export {
  chooseProvider,
  type ChosenProvider,
  nextProvider,
  rankProviders,
} from "./loop/provider_selection.ts";
export { injectionMessage, placeInjections, ToolListBuilder } from "./loop/chat_request.ts";
export { createLoop } from "./loop/loop.ts";
export { SteeringQueue } from "./loop/steering.ts";
export { type SelectingParts, type Selection, selectTool } from "./loop/tool_calls.ts";
export { toolErrorType } from "./tools.ts";
export { inputProblems } from "./loop/tool_input_validation.ts";
export { type LoopConfig, loopConfigSchema, type LoopSchemaDefaults } from "./loop/loop_config.ts";
export { type LoopDefaults, mountLoop } from "./loop/mount_loop.ts";
