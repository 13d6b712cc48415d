/** `provider-gemini` against aimock. */
import { testAimock } from "./providers/aimock.ts";
import { GEMINI } from "./providers/gemini_wire.ts";

testAimock(GEMINI, { thinking: true, ids: true });
