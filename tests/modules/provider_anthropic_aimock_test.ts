/** `provider-anthropic` against aimock. */
import { testAimock } from "./providers/aimock.ts";
import { ANTHROPIC } from "./providers/anthropic_wire.ts";

testAimock(ANTHROPIC, { thinking: true, ids: true });
