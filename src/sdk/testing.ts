/**
 * The test kit for modules: a coordinator, sessions, mocks, a recorder, a simulated clock, and the contracts
 * as test suites.
 *
 * @example A tool, tested
 * ```ts
 * import { MockTool, TestCoordinator, testTool } from "preamp/testing";
 *
 * const clock = new MockTool("clock", "12:00");
 * const coordinator = new TestCoordinator();
 * await coordinator.mount("tools", clock);
 * console.log(coordinator.tools.clock?.name); // "clock"
 *
 * testTool("clock", () => new MockTool("clock", "12:00"), { test: (_name, run) => void run() });
 * ```
 *
 * @module
 */
export type { InjectionLimits } from "./hook_outcomes.ts";
export * from "../testing/assertions.ts";
export { FakeClock, realClock, turn, waitFor, type WaitOptions } from "../testing/clocks.ts";
export * from "../testing/coordinator.ts";
export { EventRecorder, type HandlerFailure } from "../testing/hooks.ts";
export { type ExampleInput, exampleInput, type ExampleInputOptions } from "../testing/example_input.ts";
export * from "../testing/mock_provider.ts";
export * from "../testing/mocks.ts";
export {
  type ConfiguredModule,
  type TestModule,
  type TestModules,
  TestSession,
  type TestSessionOptions,
  type TurnOutcome,
} from "../testing/session.ts";
export * from "../testing/contracts/tool.ts";
export * from "../testing/contracts/provider.ts";
export * from "../testing/contracts/hook.ts";
export * from "../testing/contracts/orchestrator.ts";
export * from "../testing/contracts/context.ts";
export type { CreateSubject, Subject, SuiteOptions, TestFunction } from "../testing/contracts/suite.ts";
