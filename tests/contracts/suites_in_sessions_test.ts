import type { Module } from "preamp";
import {
  MockContextManager,
  MockProvider,
  MockTool,
  testContext,
  type TestFunction,
  testHook,
  testProvider,
  testTool,
} from "preamp/testing";
import { assertEquals } from "../assert.ts";
import { failures } from "./broken_kit.ts";

type Suite = (name: string, create: () => Module, options: { test: TestFunction }) => void;

const PARTS: [suite: Suite, point: string, part: object, title: string][] = [
  [testTool, "tools", new MockTool("clock"), "a model can call it in a session"],
  [testProvider, "providers", new MockProvider(), "mount() mounts a provider in a session"],
  [testContext, "context", new MockContextManager(), "a session keeps its history in it"],
  [
    testHook,
    "hooks",
    { events: ["tool:pre"], handler: () => null },
    "mount() registers its handlers in a session",
  ],
];

for (const [suite, point, part, title] of PARTS) {
  Deno.test(`${suite.name}() fails "${title}" for a module that a session refuses`, async () => {
    const create = (): Module => ({
      module: { contract: 99 } as never, // of a later version
      mount: (coordinator) => coordinator.mount(point, part),
    });
    const { failed } = await failures((name, test) => suite(name, create, { test }));
    assertEquals(failed.includes(title), true);
  });
}

Deno.test("testContext() fails a context whose view is empty", async () => {
  class Empty extends MockContextManager {
    override getMessagesForRequest() {
      return Promise.resolve([]);
    }
  }
  const { failed } = await failures((name, test) => testContext(name, () => new Empty(), { test }));
  assertEquals(failed.includes("a session keeps its history in it"), true);
});
