"""Refusals as they arrive: each wording in each wrapping, and what looks like an overflow and is none."""

import json

import pytest

from refold.models.provider_errors import ErrorPattern, classify_error, is_overflow, rows

ROWS = rows()


class Refused(Exception):
    """An SDK's error: words, status and body."""

    def __init__(self, message: str, status: int = 400, body: object = None) -> None:
        super().__init__(message)
        self.status_code, self.body = status, body


class ClientError(Exception):
    """An error of botocore, with the response as it parses it."""

    def __init__(self, code: str, text: str, status: int = 400) -> None:
        super().__init__(f"An error occurred ({code}) when calling the Converse operation: {text}")
        self.response = {"Error": {"Code": code, "Message": text}, "ResponseMetadata": {"HTTPStatusCode": status}}


def anthropic(text: str) -> str:
    error = {"type": "invalid_request_error", "message": text}
    return json.dumps({"type": "error", "error": error, "request_id": "req_vrtx_011"})


def vertex(text: str) -> dict[str, object]:
    """Claude on Vertex: Anthropic's body as the message of Google's; lbjlaq/Antigravity-Manager#498."""
    return {"error": {"code": 400, "message": anthropic(text), "status": "INVALID_ARGUMENT"}}


def pasted(text: str) -> str:
    """The same with quotes that nobody escaped; lbjlaq/Antigravity-Manager#608."""
    return 'API Error: 400 {"error":{"code":400,"message":"' + anthropic(text) + '","status":"INVALID_ARGUMENT"}}'


def openrouter(text: str) -> dict[str, object]:
    """A provider's body as a string in `metadata.raw`; cline/cline#13194."""
    raw = json.dumps({"error": {"message": text, "type": "Bad Request", "code": 400}})
    metadata = {"raw": raw, "provider_name": "Nvidia", "is_byok": False}
    return {"error": {"message": "Provider returned error", "code": 400, "metadata": metadata}}


def thrice(text: str) -> str:
    """JSON within three strings of JSON, as gateways behind gateways send it."""
    inner = json.dumps({"message": anthropic(text), "error_code": "BAD_REQUEST"})
    return json.dumps({"error": {"message": json.dumps({"error": {"message": inner}}), "code": 400}})


def databricks(text: str) -> dict[str, object]:
    message = json.dumps({"message": text})
    return {"error_code": "BAD_REQUEST", "message": f"Bad request: rpc error: code = InvalidArgument desc = {message}"}


def litellm(text: str) -> Refused:
    """The proxy's prefixes around Python's own print of bytes; BrokkAi/brokk-app#540."""
    said = f"litellm.BadRequestError: AnthropicException - b'{anthropic(text)}'. Received Model Group=claude"
    body = {"message": said, "type": None, "param": None, "code": "400"}
    return Refused(f"Error code: 400 - {{'error': {body}}}", 400, {"error": body})


def printed(text: str) -> str:
    """A body as Python prints it, behind the words of the OpenAI SDK; THUDM/LongBench#104."""
    return f"Error code: 400 - { ({'object': 'error', 'message': text, 'type': 'BadRequestError', 'code': 400}) }"


def botocore(text: str) -> ClientError:
    return ClientError("ValidationException", f"The model returned the following errors: {text}")


def listed(text: str) -> str:
    """The list that Gemini streams; google-gemini/gemini-cli#6678."""
    error = {"code": 400, "message": text, "errors": [{"message": text, "domain": "global", "reason": "badRequest"}]}
    return "[API Error: " + json.dumps([{"error": error}], indent=2) + "]"


def caused(text: str) -> RuntimeError:
    outer = RuntimeError("the call failed")
    outer.__cause__ = Refused(f"400 {text}", 400, {"error": {"message": text}})
    return outer


WRAPPINGS = (str, anthropic, vertex, pasted, openrouter, thrice, databricks, litellm, printed, botocore, listed, caused)


@pytest.mark.parametrize("wrapped", WRAPPINGS, ids=lambda wrapped: wrapped.__name__)
@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_a_wording_is_read_the_same_however_it_is_wrapped(row: ErrorPattern, wrapped: object) -> None:
    found = classify_error(wrapped(row.sample))
    assert (found.kind, found.limit, found.requested) == (row.kind, row.limit, row.requested)
    assert row.remedy in {None, found.remedy}


def body(http: int, message: str, **more: object) -> dict[str, object]:
    return {"status": http, "body": {"error": {"message": message, **more}}}


CODED = "context_length_exceeded"
TEXTS = [  # (error, kind, remedy, limit, requested), each as reported at the place named behind it
    (body(400, "litellm.ContextWindowExceededError: AnthropicError - prompt is too long: 209303 tokens > 200000 maximum"), "context_overflow", "compact", 200000, 209303),  # OpenHands/OpenHands#5350
    (body(500, "litellm.InternalServerError: This model's maximum context length is 8192 tokens. However, you requested 9000 tokens."), "context_overflow", "compact", 8192, 9000),  # as above
    (body(400, "Your input exceeds this model's context window.", code=CODED), "context_overflow", "compact", None, None),  # code-yeongyu/senpi#1466
    (body(400, "This model's maximum context length has been exceeded. Please reduce the length of the messages."), "context_overflow", "compact", None, None),  # Niek/chatgpt-web#525
    (body(400, "This endpoint's maximum context length is 32768 tokens. However, you requested about 42832 tokens (42832 of text input). Please reduce the length of either one"), "context_overflow", "compact", 32768, 42832),  # refly-ai/refly#1177
    (body(400, "This endpoint's maximum context length is 262144 tokens. However, you requested about 264433 tokens (188 of text input, 2101 of tool input, 262144 in the output)."), "context_overflow", "reduce_max_tokens", 262144, 264433),  # continuedev/continue#12733
    ("400 Please reduce the length of the messages or completion. Current length is 42328 while limit is 40000", "context_overflow", "compact", 40000, 42328),  # cline/cline#5140
    ("Error: 400 - This model's maximum context length is 16385 tokens. However, your messages resulted in 23273 tokens (22394 in the messages, 879 in the functions).", "context_overflow", "compact", 16385, 23273),  # huggingface/smolagents#1719
    ("ValueError: This model's maximum context length is 16384 tokens. However, you requested 122946 tokens (112946 in the messages, 10000 in the completion).", "context_overflow", "compact", 16384, 122946),  # vllm-project/vllm#20409
    ("This model's maximum context length is 4097 tokens. However, you requested 5444 tokens (444 in the messages, 5000 in the completion).", "context_overflow", "reduce_max_tokens", 4097, 5444),  # diffbot/code-gpt-docs#123
    (body(400, "<400> InternalError.Algo.InvalidParameter: Range of input length should be [1, 204800]", code="invalid_parameter_error"), "context_overflow", "compact", 204800, None),  # QwenLM/qwen-code#98
    ({"code": "InvalidParameter", "message": "Range of input length should be [1, 6000]", "request_id": "x"}, "context_overflow", "compact", 6000, None),  # LLM-Red-Team/qwen-free-api#23
    ({"error": {"message": "prompt token count of 93854 exceeds the limit of 90000", "param": "", "code": "", "type": ""}}, "context_overflow", "compact", 90000, 93854),  # jjleng/copilot-more#35
    ({"status": 413, "errors": [{"code": 3010, "message": "3010: AiError: The estimated number of input and maximum output tokens (35000) exceeded this model context window limit (24000)"}]}, "context_overflow", "compact", 24000, 35000),  # Cloudflare
    ("AiError: This model's maximum context length is 131072 tokens. However, you requested 16000 output tokens and your prompt contains at least 115073 input tokens, for a total of at least 131073 tokens.", "context_overflow", "reduce_max_tokens", 131072, 131073),  # cloudflare/cloudflare-docs#29731
    ('流式 API 请求失败: 400 Bad Request {"message":"Input is too long.","reason":"CONTENT_LENGTH_EXCEEDS_THRESHOLD"}', "context_overflow", "compact", None, None),  # hank9999/kiro.rs#67
    (body(400, "Prompt exceeds max length", code="1261"), "context_overflow", "compact", None, None),  # tashfeenahmed/freellmapi#873
    (body(400, "Prompt 超长", code="1261"), "context_overflow", "compact", None, None),  # https://docs.bigmodel.cn/cn/faq/api-code
    (body(400, "输入内容过长，超过模型上下文长度"), "context_overflow", "compact", None, None),  # https://docs.bigmodel.cn/cn/faq/api-code
    ({"error": {"code": "OutofContextError", "message": "Total tokens of image and text exceed max message tokens.", "type": "BadRequest"}}, "context_overflow", "compact", None, None),  # https://www.volcengine.com/docs/82379/1299023
    ({"object": "error", "message": "The input (61709 tokens) is longer than the model\\'s context length (40960 tokens).", "type": "BadRequestError", "code": 400}, "context_overflow", "compact", 40960, 61709),  # QwenLM/Qwen3#1321
    ({"object": "error", "message": "The input (85050 tokens) is longer than the model’s context length (32768 tokens)."}, "context_overflow", "compact", 32768, 85050),  # sgl-project/sglang#8096
    ("ValueError: The decoder prompt (length 337896) is longer than the maximum model length of 128000. Make sure that `max_model_len` is no smaller than the number of text tokens plus multimodal tokens.", "context_overflow", "compact", 128000, 337896),  # EvolvingLMMs-Lab/lmms-eval#711
    ({"error": "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 2048. Given: 1887 `inputs` tokens and 1024 `max_new_tokens`", "error_type": "validation"}, "context_overflow", "reduce_max_tokens", 2048, 2911),  # opea-project/GenAIInfra#487
    ("Encountered an error when fetching new request: Prompt length (200) exceeds maximum input length (1)", "context_overflow", "compact", 1, 200),  # triton-inference-server/tensorrtllm_backend#565
    ("Trying to keep the first 111490 tokens when context the overflows. However, the model is loaded with context length of only 32768 tokens, which is not enough.", "context_overflow", "compact", 32768, 111490),  # lmstudio-ai/lmstudio-bug-tracker#546
    ("The number of tokens to keep from the initial prompt is greater than the context length (n_keep: 15857>= n_ctx: 4096). Try to load the model with a larger context length", "context_overflow", "compact", 4096, 15857),  # lmstudio-ai/lmstudio-bug-tracker#2256
    (body(400, "request (9071 tokens) exceeds the available context size (8192 tokens), try increasing it", type="exceed_context_size_error", n_prompt_tokens=9071, n_ctx=8192), "context_overflow", "compact", 8192, 9071),  # anomalyco/opencode#49965
    ("litellm.BadRequestError: SambanovaException - The maximum context length of DeepSeek-V3-0324 is 32768. However, answering your request will take 39732 tokens.", "context_overflow", "compact", 32768, 39732),  # OpenHands/OpenHands#9252
    ("400 INVALID_ARGUMENT. {'error': {'code': 400, 'message': 'The input token count (81881) exceeds the maximum number of tokens allowed (65536).', 'status': 'INVALID_ARGUMENT'}}", "context_overflow", "compact", 65536, 81881),  # googleapis/python-genai#2466
    ('OpenRouter (openrouter) provider error:\n{"error":{"message":"Provider returned error","code":400,"metadata":{"raw":"{\\"message\\":\\"input length and `max_tokens` exceed context limit: 149674 + 64000 > 204658, decrease input length or `max_tokens` and try again\\"}","provider_name":"Amazon Bedrock"}},"user_id":"user_2"}', "context_overflow", "reduce_max_tokens", 204658, 213674),  # egoist/chatwise-releases#917
    ("{'status': 'failure', 'message': 'openrouter error: Provider returned error | metadata: {\"raw\":{\"error\":{\"message\":\"This model\\'s maximum context length is 8192 tokens. However, you requested 8246 tokens (54 in the messages, 8192 in the completion).\"}}}'}", "context_overflow", "reduce_max_tokens", 8192, 8246),  # truefoundry/models#873
    ("Bedrock: ModelError: prompt is too long: 209353 tokens > 199999 maximum", "context_overflow", "compact", 199999, 209353),  # entropy-research/Devon#88
    (ClientError("ValidationException", "Input is too long for requested model."), "context_overflow", "compact", None, None),
    (ClientError("ModelErrorException", "Input Tokens Exceeded: Number of input tokens exceeds maximum length.", 424), "context_overflow", "compact", None, None),
    (ClientError("ThrottlingException", "Too many tokens, please wait before trying again.", 429), "rate_limit", "wait", None, None),  # anomalyco/opencode#13018
    (ClientError("AccessDeniedException", "You don't have access to the model with the specified model ID.", 403), "auth", "none", None, None),
    (ClientError("ValidationException", "The maximum tokens you requested exceeds the model limit of 2048. Try again with a maximum tokens value that is lower than 2048."), "invalid_max_tokens", "reduce_max_tokens", 2048, None),  # aws-samples/bedrock-access-gateway#41
    (body(400, "INVALID_ARGUMENT: max_tokens (131072) cannot exceed 65536. Please reduce the length of max output tokens generated."), "invalid_max_tokens", "reduce_max_tokens", 65536, 131072),  # mlflow/mlflow#25359
    (body(400, "max_completion_tokens is too large: 262144. This model supports at most 256000 completion tokens."), "invalid_max_tokens", "reduce_max_tokens", 256000, 262144),  # anomalyco/models.dev#4422
    (body(400, "max_tokens must be less than or equal to 16384, the maximum value for max_tokens is less than the context_window for this model"), "invalid_max_tokens", "reduce_max_tokens", 16384, None),  # RooCodeInc/Roo-Code#5729
    (body(413, "Request too large for model `llama-3.3-70b-versatile` in organization `org_0` service tier `on_demand` on tokens per minute (TPM): Limit 12000, Requested 14137, please reduce your message size and try again.", type="tokens", code="rate_limit_exceeded"), "rate_limit", "compact", 12000, 14137),  # continuedev/continue#10218
    (body(429, "Request too large for gpt-4o on tokens per min (TPM): Limit 30000, Requested 342389. The input or output tokens must be reduced in order to run successfully."), "rate_limit", "compact", 30000, 342389),  # vanna-ai/vanna-flask#11
    (body(413, "Request body too large for gpt-4o model. Max size: 8000 tokens.", code="tokens_limit_reached"), "context_overflow", "compact", 8000, None),
    (body(413, "Request exceeds the maximum allowed number of bytes. The maximum request size is 32 MB.", type="request_too_large"), "request_too_large", "strip_media", None, None),  # anthropics/anthropic-sdk-python#1028
    (body(400, "Request payload size exceeds the limit: 20971520 bytes.", status="INVALID_ARGUMENT"), "request_too_large", "strip_media", None, None),  # Vertex AI
    (body(400, "messages.19.content.27.image.source.base64.data: At least one of the image dimensions exceed max allowed size for many-image requests: 2000 pixels"), "request_too_large", "strip_media", None, None),  # anthropics/claude-code#24630
    (body(400, "messages.38.content.1.image.source.base64.data: At least one of the image dimensions exceeds max allowed size for many-images requests: 2000 pixels"), "request_too_large", "strip_media", None, None),  # langgenius/dify#11177
    (body(400, "Too much media: 0 document pages + 101 images > 100"), "request_too_large", "strip_media", None, None),
    (body(400, "Failed to buffer the request body: length limit exceeded", code="validation_error"), "request_too_large", "strip_media", None, None),  # kirodotdev/Kiro#10773
    ({"status": 413, "message": "<html><head><title>413 Request Entity Too Large</title></head></html>"}, "request_too_large", "strip_media", None, None),
    ({"type": "error", "error": {"type": "request_fail", "upstream_error": {"type": "error", "error": {"type": "invalid_request_error", "message": "messages.1.content.0: Invalid `signature` in `thinking` block"}}}}, "reasoning_invalid", "drop_reasoning", None, None),  # ding113/claude-code-hub#518
    ({"error": {"code": "400", "message": "messages.1.content.0: Invalid signature in thinking block", "type": "invalid_params"}}, "reasoning_invalid", "drop_reasoning", None, None),  # YishenTu/claudian#250
    ({"message": '429 All accounts exhausted. Last error: HTTP 400: {\n  "error": {\n    "code": 400,\n    "message": "{\\"type\\":\\"error\\",\\"error\\":{\\"type\\":\\"invalid_request_error\\",\\"message\\":\\"messages.1.content.0: Invalid `signature` in `thinking` block\\"}}",\n    "status": "INVALID_ARGUMENT"\n  }\n}\n', "status": 429}, "reasoning_invalid", "drop_reasoning", None, None),  # lbjlaq/Antigravity-Manager#1393
    ("litellm.BadRequestError: BedrockException - {\"message\":\"The model returned the following errors: messages.1.content.0.type: Expected `thinking` or `redacted_thinking`, but found `tool_use`. When `thinking` is enabled, a final `assistant` message must start with a thinking block\"}. Received Model Group=claude-4-5-sonnet", "reasoning_missing", "restore_reasoning", None, None),  # anomalyco/opencode#3077
    (body(400, "The encrypted content for item rs_0a18166210d72b could not be verified. Reason: Encrypted content could not be decrypted or parsed.", code="invalid_encrypted_content"), "reasoning_invalid", "drop_reasoning", None, None),  # smallmain/vscode-unify-chat-provider#178
    ({"code": "invalid-argument", "error": "Could not decrypt the provided encrypted_content. Ensure the value is the unmodified encrypted_content from a previous response."}, "reasoning_invalid", "drop_reasoning", None, None),  # Wei-Shaw/sub2api#4535
    (body(400, "Invalid thought signature.", status="INVALID_ARGUMENT"), "reasoning_invalid", "drop_reasoning", None, None),  # lbjlaq/Antigravity-Manager#3342
    ("400 Missing `reasoning_content` field in the assistant message at message index 46.", "reasoning_missing", "restore_reasoning", None, None),  # continuedev/continue#11285
]  # fmt: skip


@pytest.mark.parametrize(("error", "kind", "remedy", "limit", "requested"), TEXTS, ids=lambda value: str(value)[:70])
def test_a_refusal_as_it_was_reported_has_its_verdict(
    error: object, kind: str, remedy: str, limit: int | None, requested: int | None
) -> None:
    found = classify_error(error)
    assert (found.kind, found.remedy, found.limit, found.requested) == (kind, remedy, limit, requested)


PROMPT = "This model's maximum context length is 8192 tokens. However, you requested 9000 tokens."
NONE = [  # (error, kind): what is no overflow
    (body(400, "Invalid 'tools[0].function.name': string too long. Expected a string with maximum length 64, but got a string with length 75 instead.", code="string_above_max_length"), "invalid_request"),
    (body(400, "Invalid 'messages[2].tool_calls[0].id': string too long. Expected a string with maximum length 40, but got a string with length 52 instead.", code="string_above_max_length"), "invalid_request"),
    (body(400, "Invalid 'metadata.title': string too long. Expected a string with maximum length 512, but got a string with length 700 instead."), "invalid_request"),
    (body(400, "max_tokens (10000) cannot exceed 8192. Please reduce the length of max output tokens generated."), "invalid_max_tokens"),
    (body(400, "max_tokens: 128000 > 64000, which is the maximum allowed number of output tokens for claude-sonnet-4-5"), "invalid_max_tokens"),
    (body(400, "Invalid max_tokens value, the valid range of max_tokens is [1, 8192]"), "invalid_max_tokens"),
    (body(400, "The parameter `max_completion_tokens` specified in the request are not valid: integer above maximum value, expected a value <= 12288, but got 16384 instead."), "invalid_max_tokens"),
    (body(400, "max_tokens and max_completion_tokens cannot be set at the same time.", code="InvalidParameter"), "other"),
    (body(400, "max_tokens is too large: 100000. This model supports at most 16384 completion tokens, whereas you provided 100000."), "invalid_max_tokens"),
    (body(400, "max_tokens must be at least 1, got -3904"), "invalid_max_tokens"),
    (body(413, "Request too large for model `x` on tokens per minute (TPM): Limit 6000, Requested 6294, please reduce your message size and try again.", code="rate_limit_exceeded"), "rate_limit"),
    (body(429, "Rate limit reached for gpt-4o on tokens per min (TPM): Limit 30000, Used 25000, Requested 9000."), "rate_limit"),
    (body(429, "Too many tokens per day, please wait before trying again."), "rate_limit"),
    ("Too many tokens per minute", "rate_limit"),
    ("This request exceeds the limit of 30000 tokens per minute", "rate_limit"),
    ("too many tokens processed", "rate_limit"),
    ("request reached organization TPD rate limit, current: 1506556, limit: 1500000", "rate_limit"),
    ("This request would exceed your account's rate limit of 40,000 input tokens per minute. Please try again later.", "rate_limit"),
    ("Number of request tokens has exceeded your per-minute rate limit", "rate_limit"),
    ("429 Too Many Requests: request exceeds rate limit", "rate_limit"),
    ("You exceeded your current quota, please check your plan and billing details.", "rate_limit"),
    (body(429, "Resource has been exhausted (e.g. check quota).", status="RESOURCE_EXHAUSTED"), "rate_limit"),
    (body(429, "您的账户已达到速率限制，请您控制请求频率"), "rate_limit"),
    (body(429, "模型请求过于频繁，当前输入长度较大，请稍后重试"), "rate_limit"),
    (body(529, "Overloaded", type="overloaded_error"), "rate_limit"),
    (body(400, "Your credit balance is too low to access the Anthropic API. Please go to Plans & Billing to upgrade or purchase credits."), "auth"),
    (body(402, "This request requires more credits, or fewer max_tokens. You requested up to 64000 tokens, but can only afford 20."), "auth"),
    (body(403, "insufficient_user_quota: Your account balance is insufficient."), "auth"),
    (body(401, "Incorrect API key provided: sk-x. You can find your API key in your account."), "auth"),
    (body(401, f"Unauthorized. Request: {PROMPT}"), "auth"),
    (body(401, f'Invalid token for request with prompt "{PROMPT}"'), "auth"),
    (body(403, f"Access denied while processing prompt: {PROMPT}"), "auth"),
    (body(403, "prompt is too long for your plan? No: this key may not use the model."), "auth"),
    (body(500, f'Internal server error while processing prompt "{PROMPT}"'), "other"),
    (body(500, f"The server had an error while processing your request. Request: {PROMPT}"), "other"),
    (body(500, f"Internal error. Prompt was: {PROMPT} Why?"), "other"),
    (body(500, json.dumps({"messages": [{"role": "user", "content": PROMPT}]})), "other"),
    (body(500, "Internal error for " + json.dumps({"messages": [{"role": "user", "content": PROMPT}]})), "other"),
    (body(502, f"upstream failed, input: '{PROMPT} Explain.'"), "other"),
    (body(500, "too many tokens were seen by the sampler"), "other"),
    (body(503, "The engine is currently overloaded, please try again later."), "rate_limit"),
    (body(400, f'The prompt "{PROMPT}" was blocked by the content policy.', code="content_filter"), "other"),
    (body(422, "invalid value for field 'context window strategy': expected one of auto, off", type="validation_error"), "other"),
    ({"detail": [{"loc": ["body", "messages", 0], "msg": "Field required", "type": "missing", "input": PROMPT}]}, "invalid_request"),
    ("Model context window too small (minimum is 128k tokens)", "other"),
    ("Context window too small: minimum is 1000 tokens", "other"),
    (body(400, "messages.4.content.1.image.source.base64: image exceeds 5 MB maximum: 6029312 bytes > 5242880 bytes"), "request_too_large"),
    (body(400, "At most 5 images may be provided in one request."), "request_too_large"),
    (body(400, "A maximum of 100 PDF pages may be provided."), "request_too_large"),
    (body(400, "Too many images in the request: the limit is 20"), "request_too_large"),
    (body(400, "messages.3.content.1.image.source.base64.data: Could not process image"), "invalid_request"),
    (body(400, "Request payload size exceeds the limit: 20971520 bytes."), "request_too_large"),
    (body(413, "Payload Too Large"), "request_too_large"),
    (body(400, "输入图片大小超过限制"), "other"),
    (body(400, "Function call is missing a thought_signature in functionCall parts. This is required for tools to work correctly.", status="INVALID_ARGUMENT"), "invalid_request"),
    (body(400, "messages.1: `tool_use` ids were found without `tool_result` blocks immediately after: toolu_1.", type="invalid_request_error"), "invalid_request"),
    (body(400, "tools.0.custom.name: String should have at most 128 characters", type="invalid_request_error"), "invalid_request"),
    (body(400, "Invalid 'tools': array too long. Expected an array with maximum length 128, but got an array with length 140 instead.", code="array_above_max_length"), "other"),
    (body(400, "#/toolConfig/tools/0/toolSpec/name: expected maxLength: 64, actual: 71, please reformat your input and try again."), "invalid_request"),
    (body(400, "A maximum of 4 blocks with cache_control may be provided. Found 5.", type="invalid_request_error"), "invalid_request"),
    (body(400, "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead."), "invalid_request"),
    (body(400, "`max_tokens` must be greater than `thinking.budget_tokens`.", type="invalid_request_error"), "invalid_request"),
    (body(404, "The model `gpt-9` does not exist or you do not have access to it."), "other"),
    (body(400, "Invalid prompt: your prompt was flagged as potentially violating our usage policy.", code="invalid_prompt"), "other"),
    (body(400, "Encrypted function output content could not be decrypted or decoded.", code="invalid_request_body"), "invalid_request"),
    (ClientError("ExpiredTokenException", "The security token included in the request is expired", 403), "auth"),
    (ClientError("ValidationException", "The provided model identifier is invalid."), "other"),
    (Refused("Connection error.", 0), "other"),
    ("The operation timed out after 600 tokens", "other"),
    ("Unexpected token < in JSON at position 0", "other"),
    ("Invalid token: the context menu is too long to show", "other"),
]  # fmt: skip


@pytest.mark.parametrize(("error", "kind"), NONE, ids=lambda value: str(value)[:70])
def test_what_only_looks_like_an_overflow_is_none(error: object, kind: str) -> None:
    found = classify_error(error)
    assert found.kind == kind
    assert is_overflow(error) == (kind == "request_too_large")


def test_there_are_enough_texts_and_every_wording_names_its_source() -> None:
    assert len(ROWS) + len(TEXTS) >= 150
    assert len(NONE) >= 50
    assert all(row.source and row.miss for row in ROWS)
    assert len({row.name for row in ROWS}) == len(ROWS)


SURE = [
    (body(400, "whatever", code=CODED), "certain"),
    (body(500, "whatever", code=CODED), "certain"),
    (body(400, "prompt is too long: 208310 tokens > 200000 maximum"), "certain"),
    ("prompt is too long: 208310 tokens > 200000 maximum", "certain"),
    (body(500, "prompt is too long: 208310 tokens > 200000 maximum"), "likely"),
    (body(400, "too many tokens in the request"), "likely"),
    (body(413, ""), "likely"),
    (body(401, "no"), "likely"),
    (body(429, "Rate limit reached"), "certain"),
    ("something else", "likely"),
]


@pytest.mark.parametrize(("error", "confidence"), SURE, ids=lambda value: str(value)[:70])
def test_a_verdict_says_how_sure_it_is(error: object, confidence: str) -> None:
    assert classify_error(error).confidence == confidence


@pytest.mark.parametrize(
    ("text", "position", "item"),
    [
        ("messages.5.content.28: `thinking` or `redacted_thinking` blocks in the latest assistant message cannot be modified.", 5, ""),
        ("messages.1.content.0: Invalid `signature` in `thinking` block", 1, ""),
        ("The encrypted content for item cmp_34ab could not be verified.", None, "cmp_34ab"),
        ("The encrypted content gAAA...DQ== could not be verified.", None, "gAAA...DQ=="),
        ("Item 'rs_0c3876fc' of type 'reasoning' was provided without its required following item.", None, "rs_0c3876fc"),
        ("Corrupted thought signature.", None, ""),
    ],
)  # fmt: skip
def test_a_refusal_of_reasoning_names_where_it_stands(text: str, position: int | None, item: str) -> None:
    found = classify_error(text)
    assert (found.kind, found.position, found.item) == ("reasoning_invalid", position, item)
