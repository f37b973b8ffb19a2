"""Digests of tensors that transformers 5.24 with torchvision 0.28 (torch 2.13) makes of a pattern, by family and size.

Made once by `support/media/programs/picture_judge.py` where torchvision is: SHA-256 of float32 values; seeds of the
patterns are 0, 1 and 2 in the order of the sizes. Of Phi-4 only the crops, not the one of the whole.
"""

from collections.abc import Mapping

SIZES = ((97, 64), (211, 333), (410, 45))

DIGESTS: Mapping[str, tuple[str, ...]] = {
    "qwen2_5_vl": (
        "0df1fe465fad03424879d0745885e92558be1c9ee287836386bccb85a605c126",
        "fbf1a7c09611a8556c8c9411d55657a6619372eef98f495245231f26fc5bc9c4",
        "85feb094ed534c39b7e79009f5f396b7dd2cd22664e6845fbe6427905ff3e7f9",
    ),
    "qwen3_vl": (
        "56004fcc9ae006eddf60a56d779c50226c9c5047cb32c17df2dfb95391d9d912",
        "ba90be5cfe927f43318b903074ff41b89acee5c71779eb08333afa216ce86660",
        "6a10bae94ac52a81da3d13901526bef3747d82a2ce014c1ed2b25c75d42d5294",
    ),
    "glm4v": (
        "f18d41d501de311f7f5af14a02a41273fc14e9a0892efe353370463a0f82cf7a",
        "fbf1a7c09611a8556c8c9411d55657a6619372eef98f495245231f26fc5bc9c4",
        "85feb094ed534c39b7e79009f5f396b7dd2cd22664e6845fbe6427905ff3e7f9",
    ),
    "kimi_k25": (
        "a88828fb66aea674d1efb7e802d1fb127b0e0e42f8ee78e04b51651ce18a6026",
        "ca5db4b64af078bad4f5b5f39d1c566c0b50cf648ad90cedd537dd9fc00a5999",
        "b28eb082cdd1443f5834be7c5e33704b195ded301d23b82f6d5e2bf0f11f305a",
    ),
    "llava": (
        "21d2be4d50889f83450f732ba8c84fe73e3a0e64a8d596f7f14b45f9342ee9d0",
        "4094a99d19b631374f18c5d9113d586cfbcd3d3d9c57200b86a19b2e5e7a6e57",
        "32fb1f8efdcfdf99a981f44560e87e8ff27a9b2b47ca23b6e37c344a7e69bbb6",
    ),
    "llava_next": (
        "bf52af3138baebe42ad2bd2d2e529a5f855f2a1497c79bd4096da5315b85be59",
        "e9eae1b40f06bd769444a0fec1d249d47da06c7badd02ad5889ce5d1544af8bb",
        "48e3362daf96c2b709fc365af1a62e973e70b12bd69db844b7da1e2c76f08e18",
    ),
    "llama4": (
        "9e2a36322b6573778eac365773375de286db472010e3dd200cb450c0899ab4d2",
        "f46c70ec9e6add55ca3aa7896f07cbec0324c7c2fa6205a3e970ad63fd7389d2",
        "943bf3dcae0bc3d6aa6792a59b7af6520bcfbbbc4eebfc098f9342f3115011e6",
    ),
    "pixtral": (
        "e3a3d7c34bcf4cb49fd67d82e90afff6592389977823b0ddb436b1d4551932d6",
        "7183afa74658353b66705b41e48bdaf941253c0e489e0a38409f97e65de730c4",
        "5a718e9b1566e4da3d49633d722062793fd5317769ef1cab27d511494e7d1995",
    ),
    "mistral3": (
        "59e6b77c75f17a598dae9b533300d474723081cf22f5a41f8760b6e6962c68af",
        "7183afa74658353b66705b41e48bdaf941253c0e489e0a38409f97e65de730c4",
        "43a22ecb7542e3278fdd2619049e162be2030d18d6ce6e8c6cd68985a79f97f0",
    ),
    "phi4mm": (
        "af2b5ef0f2e78d0e8ff3263e941693ddb07ec6e8f49ac0c31565701bf78abe73",
        "6e3d47c3f88c5bf8cb6888b921150d055b241a6311f3e1cb506caee9f4e434c5",
        "fdc0fe59fcc32e6a4b123a82de3268a75d420b736a9ae014470a873fb83c3f0b",
    ),
    "internvl": (
        "f012a565bb331202b24e02c1081d50c4deb194807bdda44242acd010697954a2",
        "2e3b95155f9b60377b23ab56e42abf77b75ae6f7a7dfec1f9c5a359d15cebe89",
        "79a8295cb7e91c4f66d945c4f749ccda081fe6ce869645d9a1b9f63d59ed27ce",
    ),
    "gemma3": (
        "1ffa574b06bfca93698cb1035013ba5ba938773c7ddee810048a1946682dc3d6",
        "a90eea9e1d662679d4e2959670320edd52e194d3d208793fb43b135face5fa72",
        "77f4f63a1461ae0544d86f1284f8361c28027e03a0c52c4e6ddba6795041247c",
    ),
    "gemma4": (
        "45133c29d8e4432627cf3a12dfd874acfe28901fac091a66ca98c87568eee631",
        "c0e37650b7053d2441bf4aac85146fe14dd30af019aac40fc692ad380cc69c07",
        "46732d98c45b4d869c2f79dd9b80a86ca83ca115c8637be3d526256dfdee7b16",
    ),
    "llava_siglip": (
        "1b4b4012edf0f86024ffe83b2eb30165e3461eb69d6e393deea28decdf0fb6ad",
        "b32b33805b65c61cb6a88bf86457003379951cb8ee8668fe6d353a78262465aa",
        "9d134c7c07f5537da30624579f12a003807e0ba5f6f6ea1abc9e1725ddde451c",
    ),
    "gemma3n": (
        "856b3bb7b2999dd266664233907f061df4f894665ace486d9d22ac246789c98f",
        "2ea8d2353ea1f12ac9bd777ae695fc4db5cd788cfed7e43b7ef38ccc5bc0e5bf",
        "2ea58f11148fee952b2c6e21c6196a06c00945fd07ead06864601bac2897456f",
    ),
    "llava_onevision": (
        "c461269ea4b56dac729fe68f66299cd23e2116baf8e842738d246f5edd8db1d9",
        "abb73e5c0740cbdde6f8509c68b2dc1443a532f5f46140a0264e5e1c40b77d13",
        "3c4fe4aa8bb5987d5d7964c485ee9ec251860f6bc7b7b950fe36ab16e951337e",
    ),
    "idefics3": (
        "7a378ab3d6ca48791a0064e07fa24694aeb0509902d57fc5bfaeddfab69aace3",
        "356f723b8540acd0b8793c660282bfb89ce3c83fa73a0e2cd4110c2609efe866",
        "c4cd406bfdcf2172dbeeae7ebb141fb800497160895cfe685834bfe13b67ee04",
    ),
    "smolvlm": (
        "b7bcdaeb8c8a04c0a65135bc2f2bc9141ac21729a44bcd4017e4ff398fc97e16",
        "09364111b7a64fb3bde0fc007a2b8da64b60836ae0b8b9804a5de24e504ee77b",
        "9b388a70352f57fd9e00b360a4fe36fe8492bfef70f84b7dd3a392bb494e014d",
    ),
    "cohere2_vision": (
        "eeac1166811985ac6f1b39e38ca04999f5204647d9593ffb3b76250f9a781cf1",
        "82e375b8dca19b1115ddb1cf72ee89c96a715bfa5a975e91106716b2ffcd1d0c",
        "61c536655e52f231433913b9fff6a34dc70fc062ba7501685968156d64a04b85",
    ),
    "internvl_chat": (
        "a694da2699a68cbf018b8735ad6745a2b328a04b47c920bd30a27f18381eca78",
        "d7c8702296e0fd8c84427508d2930e48f760287743ae956cd3105fb99d19a2cd",
        "1796770a4e95874284068d643fc06d939b49629bec09d960cd98e240465bf287",
    ),
    "deepseek_vl2": (
        "d833a9e6b783ce0610cb83f86cff09497880965ccb6474f751843cb31d4d01b2",
        "7bb55233405a68dc33c9ff492b47cd1e07c7775596e51d15d1bc51fd3a786105",
        "17c7cc5d172be54d8e7f61311d952586aaf6519a6c0f7e6044b7602ff7b87b17",
    ),
}
