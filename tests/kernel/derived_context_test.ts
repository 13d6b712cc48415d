import { parseConfig, SimpleContext } from "../../src/sdk/context.ts";
import type { Message } from "../../src/sdk/types.ts";
import { assertEquals } from "../assert.ts";
import { kit } from "../support/sessions.ts";

Deno.test("a context derived from SimpleContext may store other messages than the log", async () => {
  class Loud extends SimpleContext {
    override addMessage(message: Message): Promise<void> {
      return super.addMessage({ ...message, content: "LOUD" });
    }
  }
  let context: Loud | null = null;
  const { run, data } = kit({
    context: async (coordinator) => {
      context = new Loud(coordinator, parseConfig({}));
      await coordinator.mount("context", context);
    },
  });
  assertEquals((await run("quiet")).status, "completed");
  assertEquals((await context!.getMessages()).map(({ content }) => content), ["LOUD", "LOUD"]);
  assertEquals((data("context:message")[0]!.message as Message).content, "quiet");
});
