/** Runs a contract suite on a broken subject and returns the failed cases, to test that suites can fail. */
import type { TestFunction } from "preamp/testing";

/** Resolves to the titles of the cases that failed, without the subject's name, and how many ran. */
export async function failures(
  register: (name: string, test: TestFunction) => void,
): Promise<{ failed: string[]; ran: number }> {
  const cases: [string, () => Promise<void>][] = [];
  register("subject", (name, run) => cases.push([name, run]));
  const failed: string[] = [];
  for (const [name, run] of cases) {
    try {
      await run();
    } catch {
      failed.push(name.slice("subject: ".length)); // which case, not why: the messages are for people
    }
  }
  return { failed, ran: cases.length };
}
