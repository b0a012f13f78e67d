from refold.models._provider_factors import provider_factor, provider_factors


def test_n09_knows_eleven_providers() -> None:
    assert len(provider_factors()) == 11
    assert provider_factor("anthropic") == 1.23
    assert provider_factor("bedrock") == 1.23
    assert provider_factor("google-ai") == 1.18
    assert provider_factor("vertex") == 1.18
    assert provider_factor("mistral") == 1.26
    for plain in ("openai", "azure", "ollama", "litellm", "huggingface", "sagemaker"):
        assert provider_factor(plain) == 1.0


def test_other_spellings_and_strangers() -> None:
    assert provider_factor("Google") == 1.18
    assert provider_factor("vertex_ai") == 1.18
    assert provider_factor("nobody") == 1.0
    assert provider_factor(None) == 1.0
