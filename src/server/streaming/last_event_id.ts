/** Where a reader of a stream was. */
import { documentError } from "../../plan/check/findings.ts";
import { wholeNumber } from "../body/validation.ts";

/**
 * Returns the seq of the `Last-Event-ID` header, or undefined when there is none.
 *
 * @throws {PreampError} `request_invalid` when it is not a seq.
 */
export function lastEventId(headers: Headers): number | undefined {
  const header = headers.get("last-event-id");
  if (header === null || header === "") return undefined;
  const seq = wholeNumber(header);
  if (typeof seq === "number") return seq;
  const message = `Cannot read Last-Event-ID: it must be a seq: received ${
    JSON.stringify(header.slice(0, 80))
  }`;
  throw documentError("request_invalid", "the request", [{ path: "Last-Event-ID", message }]);
}
