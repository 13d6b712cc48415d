/** A suite that cannot fail is a bug: what runs a suite on a broken subject and tells which cases failed. */
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
