/** Runs the contract suites on built-in modules; modules that need fakes run theirs in tests/modules/. */
import { testContext, testOrchestrator, testProvider } from "preamp/testing";

const load = (id: string) => () => import(`../../modules/${id}/mod.ts`);
const calculator = {
  name: "calculator",
  description: "Evaluates arithmetic.",
  parameters: { type: "object", properties: { expression: { type: "string" } } },
};

testOrchestrator("loop-basic", load("loop-basic"));
testOrchestrator("loop-streaming", load("loop-streaming"));
testContext("context-simple", load("context-simple"));
testProvider("provider-mock", load("provider-mock"), {
  tool_request: { messages: [{ role: "user", content: "What is 6 * 7?" }], tools: [calculator] },
});
